#include "templates/written.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "templates/operations.h"

namespace verbatim::jinja {

namespace {

constexpr int32_t kFirstExponent = 16;  // where Python begins to write numbers with an exponent

/// What a value of several parts is written into.
struct Output {
  Machine& machine;
  std::string text = {};
  bool from_data = false;

  void add(std::string_view more) {
    text += more;
    machine.scan(more.size());
    machine.check_length(text.size());
  }
};

void check_depth(const Machine& machine, int32_t depth) {
  if (depth > kDeepestValue) machine.fail("a list or dictionary nests too deeply to be written");
}

void add_escaped(Output& output, std::string_view text, size_t at, size_t length) {
  const uint32_t c = utf8_character(text, at);
  if (c == '\n') return output.add("\\n");
  if (c == '\r') return output.add("\\r");
  if (c == '\t') return output.add("\\t");
  const auto category = u_charType(static_cast<UChar32>(c));
  const bool hidden = c != ' ' && (category == U_CONTROL_CHAR || category == U_FORMAT_CHAR ||
                                   category == U_PRIVATE_USE_CHAR || category == U_UNASSIGNED ||
                                   category == U_LINE_SEPARATOR || category == U_PARAGRAPH_SEPARATOR ||
                                   category == U_SPACE_SEPARATOR);
  if (!hidden) return output.add(text.substr(at, length));
  if (c < 0x100) return output.add(fmt::format("\\x{:02x}", c));
  output.add(c < 0x10000 ? fmt::format("\\u{:04x}", c) : fmt::format("\\U{:08x}", c));
}

/// A text as Python's repr() writes it.
void add_quoted(Output& output, const TracedText& text) {
  if (!text.from_template()) output.from_data = true;
  const std::string& bytes = text.bytes();
  const bool has_single = bytes.find('\'') != std::string::npos;
  const char quote = has_single && bytes.find('"') == std::string::npos ? '"' : '\'';
  output.add(std::string_view(&quote, 1));
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = utf8_length(bytes[i]);
    if (bytes[i] == quote || bytes[i] == '\\') output.add("\\");
    add_escaped(output, bytes, i, length);
    i += length;
  }
  output.add(std::string_view(&quote, 1));
}

void add_value(Output& output, const Value& value, int32_t depth);

void add_list(Output& output, const List& list, int32_t depth) {
  output.from_data |= list.from_data;
  output.add(list.tuple ? "(" : "[");
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) output.add(", ");
    add_value(output, list.items[i], depth + 1);
  }
  if (list.tuple && list.items.size() == 1) output.add(",");
  output.add(list.tuple ? ")" : "]");
}

void add_dict(Output& output, const Dict& dict, int32_t depth) {
  output.from_data |= dict.from_data;
  output.add(dict.is_namespace ? "<Namespace {" : "{");
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) output.add(", ");
    add_value(output, dict.entries[i].first, depth + 1);
    output.add(": ");
    add_value(output, dict.entries[i].second, depth + 1);
  }
  output.add(dict.is_namespace ? "}>" : "}");
}

std::string plain(const Value& value) {
  if (is<None>(value)) return "None";
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "True" : "False";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return python_number(*number);
  if (const auto* called = std::get_if<Callable*>(&value)) {
    return "<" + std::string((*called)->name) + ">";
  }
  return is<Loop*>(value) ? "<loop>" : "";
}

void add_value(Output& output, const Value& value, int32_t depth) {
  check_depth(output.machine, depth);
  output.machine.step();
  if (const TracedText* text = text_of(value)) return add_quoted(output, *text);
  if (const auto* list = std::get_if<List*>(&value)) return add_list(output, **list, depth);
  if (const auto* dict = std::get_if<Dict*>(&value)) return add_dict(output, **dict, depth);
  output.add(is<Undefined>(value) ? "Undefined" : plain(value));
}

// JSON.

void add_json_text(Output& output, const TracedText& text, const JsonStyle& style) {
  if (!text.from_template()) output.from_data = true;
  const std::string& bytes = text.bytes();
  std::string quoted = "\"";
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = utf8_length(bytes[i]);
    const uint32_t c = utf8_character(bytes, i);
    static constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
    static constexpr std::string_view kNames = "\"\\nrtfb";
    const size_t place = c < 0x80 ? kShort.find(static_cast<char>(c)) : std::string_view::npos;
    if (place != std::string_view::npos) {
      quoted += '\\';
      quoted += kNames[place];
    } else if (c < 0x20 || (style.ascii && c > 0x7E && c < 0x10000)) {
      quoted += fmt::format("\\u{:04x}", c);
    } else if (style.ascii && c >= 0x10000) {
      quoted += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + (c & 0x3FF));
    } else {
      quoted.append(bytes, i, length);
    }
    i += length;
  }
  output.add(quoted + '"');
}

std::string json_plain(Output& output, const Value& value) {
  if (is<None>(value)) return "null";
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) {
    if (std::isnan(*number)) return "NaN";
    if (std::isinf(*number)) return *number > 0 ? "Infinity" : "-Infinity";
  }
  if (is<int64_t>(value) || is<double>(value)) return plain(value);
  output.machine.fail("{} cannot be written as JSON", type_name(value));
}

void add_json(Output& output, const Value& value, const JsonStyle& style, int32_t depth);

void new_line(Output& output, const JsonStyle& style, int32_t depth) {
  if (!style.indent) return;
  output.machine.check_length(static_cast<size_t>(*style.indent * depth));
  output.add("\n" + std::string(static_cast<size_t>(*style.indent * depth), ' '));
}

void add_json_list(Output& output, const List& list, const JsonStyle& style, int32_t depth) {
  output.from_data |= list.from_data;
  if (list.items.empty()) return output.add("[]");
  output.add("[");
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) output.add(style.item_separator);
    new_line(output, style, depth + 1);
    add_json(output, list.items[i], style, depth + 1);
  }
  new_line(output, style, depth);
  output.add("]");
}

void add_json_dict(Output& output, const Dict& dict, const JsonStyle& style, int32_t depth) {
  output.from_data |= dict.from_data;
  if (dict.entries.empty()) return output.add("{}");
  std::vector<const std::pair<Value, Value>*> entries;
  for (const auto& entry : dict.entries) entries.push_back(&entry);
  if (style.sorted) {
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const auto* a, const auto* b) { return less(output.machine, a->first, b->first); });
  }
  output.add("{");
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) output.add(style.item_separator);
    new_line(output, style, depth + 1);
    if (const TracedText* key = text_of(entries[i]->first)) {
      add_json_text(output, *key, style);
    } else {
      output.add("\"" + json_plain(output, entries[i]->first) + "\"");
    }
    output.add(style.key_separator);
    add_json(output, entries[i]->second, style, depth + 1);
  }
  new_line(output, style, depth);
  output.add("}");
}

void add_json(Output& output, const Value& value, const JsonStyle& style, int32_t depth) {
  check_depth(output.machine, depth);
  output.machine.step();
  if (const TracedText* text = text_of(value)) return add_json_text(output, *text, style);
  if (const auto* list = std::get_if<List*>(&value)) return add_json_list(output, **list, style, depth);
  if (const auto* dict = std::get_if<Dict*>(&value); dict != nullptr && !(*dict)->is_namespace) {
    return add_json_dict(output, **dict, style, depth);
  }
  output.add(json_plain(output, value));
}

/// Makes values of the events of a JSON parser.
class Reader {
 public:
  explicit Reader(Machine& machine) : machine_(machine) {}

  bool null() { return add(None{}); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) {
    return value <= INT64_MAX ? add(static_cast<int64_t>(value)) : add(static_cast<double>(value));
  }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(machine_.text(std::move(value), false)); }
  bool binary(std::vector<uint8_t>&) { return false; }
  bool start_object(size_t) {
    Dict* const dict = machine_.dict();
    dict->from_data = true;
    return open(dict);
  }
  bool key(std::string& name) {
    keys_.back() = machine_.text(std::move(name), false);
    return true;
  }
  bool end_object() { return close(); }
  bool start_array(size_t) {
    List* const list = machine_.list();
    list->from_data = true;
    return open(list);
  }
  bool end_array() { return close(); }
  bool parse_error(size_t place, const std::string&, const nlohmann::json::exception&) {
    problem_ = fmt::format("they are no JSON (near byte {})", place);
    return false;
  }

  const Value& result() const { return result_; }
  const std::string& problem() const { return problem_; }

 private:
  bool add(Value value) {
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (auto* const* list = std::get_if<List*>(&open_.back())) {
      machine_.append(**list, std::move(value));
    } else {
      machine_.set(*std::get<Dict*>(open_.back()), keys_.back(), std::move(value));
    }
    return true;
  }
  bool open(Value value) {
    if (static_cast<int32_t>(open_.size()) >= kDeepestValue) {
      problem_ = "they nest too deeply";
      return false;
    }
    add(value);
    open_.push_back(std::move(value));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  Machine& machine_;
  Value result_;
  std::string problem_ = "they are no JSON";
  std::vector<Value> open_;
  std::vector<Value> keys_;  ///< of each open object, the key whose value comes next
};

}  // namespace

std::string python_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto shortest = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string scientific(buffer, shortest.ptr);
  const int32_t exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (exponent < -4 || exponent >= kFirstExponent) return scientific;
  char fixed[64];
  const auto end = std::to_chars(fixed, fixed + sizeof fixed, value, std::chars_format::fixed);
  std::string text(fixed, end.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

TracedText written(Machine& machine, const Value& value) {
  if (const TracedText* text = text_of(value)) return *text;
  if (!is<List*>(value) && !is<Dict*>(value)) return {plain(value), true};
  Output output{machine};
  add_value(output, value, 0);
  return {std::move(output.text), !output.from_data};
}

TracedText written_json(Machine& machine, const Value& value, const JsonStyle& style) {
  Output output{machine};
  add_json(output, value, style, 0);
  return {std::move(output.text), !output.from_data};
}

Dict* read_variables(Machine& machine, std::string_view json) {
  Reader reader(machine);
  const bool read = nlohmann::json::sax_parse(json, &reader);
  if (!read) bad_input("the variables of the chat template cannot be read: {}", reader.problem());
  auto* const* dict = std::get_if<Dict*>(&reader.result());
  if (dict == nullptr) bad_input("the variables of the chat template must be a JSON object");
  return *dict;
}

}  // namespace verbatim::jinja
