#include "verbatim/structure.h"

#include "base/error.h"
#include "base/utf8.h"
#include "structure/json_schema.h"
#include "structure/node.h"
#include "structure/regex_node.h"

namespace verbatim {

namespace {

void require_valid(std::string_view text, const char* what) {
  if (find_invalid_utf8(text) != std::string_view::npos) bad_input("{} is not valid UTF-8", what);
}

std::vector<NodePointer> nodes_of(const std::vector<Structure>& parts) {
  std::vector<NodePointer> nodes;
  for (const Structure& part : parts) nodes.push_back(part.node());
  return nodes;
}

}  // namespace

Structure Structure::text(std::string_view text) {
  require_valid(text, "a structure's text");
  return Structure(text_node(std::string(text)));
}

Structure Structure::special(std::string_view spelling) {
  require_valid(spelling, "the spelling of a special token");
  return Structure(make_node({.kind = Node::Kind::kSpecial, .text = std::string(spelling)}));
}

Structure Structure::free_text(std::vector<std::string> without) {
  for (const std::string& text : without) {
    require_valid(text, "a string that free text must not contain");
    if (text.empty()) fail(ErrorKind::kUsage, "a string that free text must not contain cannot be empty");
  }
  return Structure(make_node({.kind = Node::Kind::kFreeText, .texts = std::move(without)}));
}

Structure Structure::json_schema(std::string_view schema) {
  return Structure(json_schema_node(schema));
}

Structure Structure::json_object() {
  return Structure(json_object_node());
}

Structure Structure::regex(std::string_view pattern) {
  return Structure(regex_node(pattern, PatternUse::kWholeText, "the regular expression"));
}

Structure Structure::sequence(std::vector<Structure> parts) {
  return Structure(sequence_node(nodes_of(parts)));
}

Structure Structure::choice(std::vector<Structure> parts) {
  if (parts.empty()) fail(ErrorKind::kUsage, "a choice needs a structure to choose");
  return Structure(choice_node(nodes_of(parts)));
}

Structure Structure::repeat(Structure part, int least, int most, std::string_view separator) {
  require_valid(separator, "a separator");
  if (least < 0 || most < -1 || (most >= 0 && most < least)) {
    fail(ErrorKind::kUsage, "a structure cannot be repeated from {} to {} times", least, most);
  }
  return Structure(repeat_node(part.node(), least, most, std::string(separator)));
}

}  // namespace verbatim
