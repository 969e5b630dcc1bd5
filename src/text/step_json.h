#pragma once

#include <string>
#include <vector>

#include "text/json_fields.h"
#include "text/pattern.h"

namespace verbatim {

// What the steps of a tokenizer.json have in common. Each function throws Error(kBadInput), naming `where`,
// if what it reads is malformed.

/// The steps of the field of a tokenizer.json, which is one step or a "Sequence" of them, whose field `list`
/// has them; sequences within sequences are taken apart. Empty if the field is absent.
std::vector<const Json*> steps_of(const Json& tokenizer, const char* field, const char* list,
                                  const std::string& where);

/// What all steps of a field make: `add` appends each of them in turn.
template <typename Steps>
Steps parse_steps(const Json& tokenizer, const char* field, const char* list, const std::string& where,
                  void (*add)(const Json&, const std::string&, Steps&)) {
  Steps steps;
  for (const Json* step : steps_of(tokenizer, field, list, where)) add(*step, where, steps);
  return steps;
}

/// The pattern of a step that searches, a string or a regular expression.
Pattern parse_pattern(const Json& step, const std::string& where);

/// The field of a step that is a single character; `standard` if it is absent, unless that is empty.
std::string character_field(const Json& step, const char* name, const std::string& standard,
                            const std::string& where);

/// The field of a step that is a count.
size_t count_field(const Json& step, const char* name, const std::string& where);

/// How "Metaspace" treats the start of a text: "always", "first" or "never".
std::string prepend_scheme(const Json& step, const std::string& where);

/// Refuses a step of a kind that does not exist here.
[[noreturn]] void refuse_step(const char* part, const std::string& type, const char* supported,
                              const std::string& where);

}  // namespace verbatim
