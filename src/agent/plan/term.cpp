#include "agent/plan/term.h"

#include <utility>

namespace verbatim::agent {

namespace {

/// A string's content between quotation marks, with dollars that would be read as references escaped.
std::string quoted_content(const std::string& text) {
  const std::string quoted = dump(text);
  std::string content;
  for (size_t i = 1; i + 1 < quoted.size(); ++i) {
    const char next = quoted[i + 1];
    if (quoted[i] == '$' && ((next >= '0' && next <= '9') || next == '{')) content += '\\';
    content += quoted[i];
  }
  return content;
}

/// A value that holds no references, with what would be read as one escaped.
std::string written_value(const Json& value) {
  if (value.is_string()) return '"' + quoted_content(value.get_ref<const std::string&>()) + '"';
  if (!value.is_structured()) return dump(value);
  std::string text = value.is_array() ? "[" : "{";
  bool first = true;
  for (const auto& [key, element] : value.items()) {
    if (!std::exchange(first, false)) text += ", ";
    if (value.is_object()) text += '"' + quoted_content(key) + "\": ";
    text += written_value(element);
  }
  return text + (value.is_array() ? "]" : "}");
}

}  // namespace

void add_references(const Term& term, std::set<int64_t>& ids) {
  if (term.kind == Term::Kind::kReference) ids.insert(term.id);
  for (const Term& part : term.parts) add_references(part, ids);
}

Json substitute(const Term& term, const std::function<const Json&(int64_t)>& result_of) {
  switch (term.kind) {
    case Term::Kind::kValue:
      return term.value;
    case Term::Kind::kReference:
      return result_of(term.id);
    case Term::Kind::kText: {
      std::string text;
      for (const Term& part : term.parts) {
        text += as_text(part.kind == Term::Kind::kReference ? result_of(part.id) : part.value);
      }
      return text;
    }
    case Term::Kind::kList: {
      Json list = Json::array();
      for (const Term& part : term.parts) list.push_back(substitute(part, result_of));
      return list;
    }
    case Term::Kind::kObject:
      break;
  }
  Json object = Json::object();
  for (size_t i = 0; i < term.parts.size(); ++i) object[term.keys[i]] = substitute(term.parts[i], result_of);
  return object;
}

std::string written(const Term& term) {
  switch (term.kind) {
    case Term::Kind::kValue:
      return written_value(term.value);
    case Term::Kind::kReference:
      return "$" + std::to_string(term.id);
    case Term::Kind::kText: {
      std::string text = "\"";
      for (const Term& part : term.parts) {
        text += part.kind == Term::Kind::kReference ? "${" + std::to_string(part.id) + "}"
                                                    : quoted_content(part.value.get<std::string>());
      }
      return text + "\"";
    }
    case Term::Kind::kList:
    case Term::Kind::kObject:
      break;
  }
  const bool list = term.kind == Term::Kind::kList;
  std::string text = list ? "[" : "{";
  for (size_t i = 0; i < term.parts.size(); ++i) {
    if (i != 0) text += ", ";
    if (!list) text += written_value(term.keys[i]) + ": ";
    text += written(term.parts[i]);
  }
  return text + (list ? "]" : "}");
}

}  // namespace verbatim::agent
