#include "text/step_json.h"

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace verbatim {

namespace {

constexpr size_t kMostSteps = 64;
constexpr int kDeepestSequence = 8;

// Lists the steps of a field that holds one step or a "Sequence" of them, sequences within sequences
// included.
void flatten(const Json& step, const char* list_name, const std::string& where, int depth,
             std::vector<const Json*>& steps) {
  if (require_string(step, "type", where) != "Sequence") {
    steps.push_back(&step);
  } else {
    const Json& list = require_field(step, list_name, where);
    if (!list.is_array()) bad_input("{}: '{}' must be a list", where, list_name);
    if (depth > kDeepestSequence) bad_input("{}: '{}' is nested too deeply", where, list_name);
    for (const Json& inner : list) flatten(inner, list_name, where, depth + 1, steps);
  }
  if (steps.size() > kMostSteps) bad_input("{}: '{}' has more than {} steps", where, list_name, kMostSteps);
}

}  // namespace

std::vector<const Json*> steps_of(const Json& tokenizer, const char* field, const char* list,
                                  const std::string& where) {
  std::vector<const Json*> steps;
  if (const Json* step = find_field(tokenizer, field)) flatten(*step, list, where, 0, steps);
  return steps;
}

Pattern parse_pattern(const Json& step, const std::string& where) {
  const Json& json = require_field(step, "pattern", where);
  Pattern pattern;
  if (const auto regex = string_field(json, "Regex", where)) {
    pattern.regex.emplace(*regex, where);
    return pattern;
  }
  pattern.literal = require_string(json, "String", where);
  if (pattern.literal.empty()) bad_input("{}: a pattern to look for is empty", where);
  return pattern;
}

std::string character_field(const Json& step, const char* name, const std::string& standard,
                            const std::string& where) {
  const auto stated = string_field(step, name, where);
  if (!stated && standard.empty()) bad_input("{}: '{}' is missing", where, name);
  std::string character = stated.value_or(standard);
  if (character.empty() || utf8_length(character[0]) != character.size()) {
    bad_input("{}: '{}' of '{}' must be a single character", where, name,
              printable(require_string(step, "type", where)));
  }
  return character;
}

size_t count_field(const Json& step, const char* name, const std::string& where) {
  const Json& value = require_field(step, name, where);
  if (!value.is_number_unsigned()) bad_input("{}: '{}' must be a count", where, name);
  return static_cast<size_t>(value.get<uint64_t>());
}

// Older files say add_prefix_space where newer ones name the scheme.
std::string prepend_scheme(const Json& step, const std::string& where) {
  const bool add = bool_field(step, "add_prefix_space", where).value_or(true);
  std::string scheme = string_field(step, "prepend_scheme", where).value_or(add ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    bad_input("{}: the 'prepend_scheme' '{}' does not exist (always, first, never do)", where,
              printable(scheme));
  }
  return scheme;
}

void refuse_step(const char* part, const std::string& type, const char* supported, const std::string& where) {
  bad_input("{}: the {} '{}' is not supported (supported: {})", where, part, printable(type), supported);
}

}  // namespace verbatim
