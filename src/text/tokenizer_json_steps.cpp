#include "text/tokenizer_json_steps.h"

#include <map>

#include "base/error.h"
#include "base/printable.h"
#include "text/byte_level.h"
#include "text/vocabulary.h"

namespace verbatim {

namespace {

constexpr size_t kMostSteps = 64;

// Lists the steps of a field that holds one step or a "Sequence" of them, sequences within sequences
// included.
void flatten(const Json& step, const char* list_name, const std::string& where, int depth,
             std::vector<const Json*>& steps) {
  if (require_string(step, "type", where) != "Sequence") {
    steps.push_back(&step);
  } else {
    const Json& list = require_field(step, list_name, where);
    if (!list.is_array()) bad_input("{}: '{}' must be a list", where, list_name);
    if (depth > 8) bad_input("{}: '{}' is nested too deeply", where, list_name);
    for (const Json& inner : list) flatten(inner, list_name, where, depth + 1, steps);
  }
  if (steps.size() > kMostSteps) bad_input("{}: '{}' has more than {} steps", where, list_name, kMostSteps);
}

std::vector<const Json*> steps_of(const Json& tokenizer, const char* field, const char* list_name,
                                  const std::string& where) {
  std::vector<const Json*> steps;
  if (const Json* step = find_field(tokenizer, field)) flatten(*step, list_name, where, 0, steps);
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

[[noreturn]] void unsupported(const char* what, const std::string& type, const char* supported,
                              const std::string& where) {
  bad_input("{}: the {} '{}' is not supported (supported: {})", where, what, printable(type), supported);
}

SplitBehavior parse_behavior(const Json& step, const std::string& where) {
  static const std::map<std::string, SplitBehavior> behaviors = {
      {"Isolated", SplitBehavior::kIsolated},
      {"Removed", SplitBehavior::kRemoved},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  const auto found = behaviors.find(require_string(step, "behavior", where));
  if (found == behaviors.end()) bad_input("{}: a 'behavior' of a split is none of those that exist", where);
  return found->second;
}

void add_normalizer_step(const Json& json, const std::string& where, Normalizer& normalizer) {
  using Kind = NormalizerStep::Kind;
  static const std::map<std::string, Kind> unicode_forms = {
      {"NFC", Kind::kNfc}, {"NFD", Kind::kNfd}, {"NFKC", Kind::kNfkc}, {"NFKD", Kind::kNfkd}};
  const std::string type = require_string(json, "type", where);
  NormalizerStep step;
  if (const auto form = unicode_forms.find(type); form != unicode_forms.end()) {
    step.kind = form->second;
  } else if (type == "Replace") {
    step.kind = Kind::kReplace;
    step.pattern = parse_pattern(json, where);
    step.content = require_string(json, "content", where);
  } else if (type == "Prepend") {
    step.kind = Kind::kPrepend;
    step.content = require_string(json, "prepend", where);
  } else if (type == "Strip") {
    step.kind = Kind::kStripLeft;
    if (bool_field(json, "strip_left", where).value_or(true)) normalizer.push_back(step);
    step.kind = Kind::kStripRight;
    if (!bool_field(json, "strip_right", where).value_or(true)) return;
  } else {
    unsupported("normalizer", type, "Sequence, NFC, NFD, NFKC, NFKD, Replace, Prepend, Strip", where);
  }
  normalizer.push_back(std::move(step));
}

// Older files say add_prefix_space where newer ones name the scheme.
std::string prepend_scheme(const Json& step, const std::string& where) {
  const bool add = bool_field(step, "add_prefix_space", where).value_or(true);
  return string_field(step, "prepend_scheme", where).value_or(add ? "always" : "never");
}

void add_metaspace(const Json& json, const std::string& where, PreTokenizer& steps) {
  using MarkFirst = PreTokenizerStep::MarkFirst;
  PreTokenizerStep step;
  step.kind = PreTokenizerStep::Kind::kMark;
  step.mark = string_field(json, "replacement", where).value_or(std::string(kSpaceMark));
  if (step.mark.empty()) bad_input("{}: the replacement of 'Metaspace' is empty", where);
  const std::string scheme = prepend_scheme(json, where);
  step.mark_first = scheme == "always"  ? MarkFirst::kAlways
                    : scheme == "first" ? MarkFirst::kTextStart
                                        : MarkFirst::kNever;
  PreTokenizerStep cut;
  cut.pattern.literal = step.mark;
  cut.behavior = SplitBehavior::kMergedWithNext;
  steps.push_back(std::move(step));
  if (bool_field(json, "split", where).value_or(true)) steps.push_back(std::move(cut));
}

void add_byte_level(const Json& json, const std::string& where, PreTokenizer& steps) {
  if (bool_field(json, "add_prefix_space", where).value_or(true)) {
    PreTokenizerStep prefix;
    prefix.kind = PreTokenizerStep::Kind::kPrefixSpace;
    steps.push_back(std::move(prefix));
  }
  if (bool_field(json, "use_regex", where).value_or(true)) {
    steps.push_back(split_step(kGpt2Pattern, SplitBehavior::kIsolated, where));
  }
}

void add_pre_tokenizer_step(const Json& json, const std::string& where,
                            PreTokenizerDescription& description) {
  const std::string type = require_string(json, "type", where);
  PreTokenizer& steps = description.steps;
  if (description.byte_level) bad_input("{}: the pre-tokenizer 'ByteLevel' must be the last step", where);
  if (type == "ByteLevel") {
    add_byte_level(json, where, steps);
    description.byte_level = true;
  } else if (type == "Split") {
    PreTokenizerStep step;
    step.pattern = parse_pattern(json, where);
    step.behavior = parse_behavior(json, where);
    step.invert = bool_field(json, "invert", where).value_or(false);
    steps.push_back(std::move(step));
  } else if (type == "Digits") {
    const bool each = bool_field(json, "individual_digits", where).value_or(false);
    steps.push_back(
        split_step(R"(\p{N})", each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, where));
  } else if (type == "Punctuation") {
    const bool stated = find_field(json, "behavior") != nullptr;
    const SplitBehavior behavior = stated ? parse_behavior(json, where) : SplitBehavior::kIsolated;
    steps.push_back(split_step(R"([\p{P}$+<=>^`|~])", behavior, where));
  } else if (type == "Whitespace") {
    steps.push_back(split_step(R"(\w+|[^\w\s]+)", SplitBehavior::kRemoved, where));
    steps.back().invert = true;
  } else if (type == "WhitespaceSplit") {
    steps.push_back(split_step(R"(\s)", SplitBehavior::kRemoved, where));
  } else if (type == "Metaspace") {
    add_metaspace(json, where, steps);
  } else {
    unsupported("pre-tokenizer", type,
                "Sequence, ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, Metaspace",
                where);
  }
}

void add_decoder_step(const Json& json, const std::string& where, PieceDecoder& decoder) {
  const std::string type = require_string(json, "type", where);
  if (type == "ByteLevel") {
    decoder.byte_level = true;
  } else if (type == "ByteFallback") {
    decoder.byte_fallback = true;
  } else if (type == "Replace") {
    const Pattern pattern = parse_pattern(json, where);
    if (pattern.regex) bad_input("{}: a decoder that replaces a regular expression is not supported", where);
    decoder.replacements.emplace_back(pattern.literal, require_string(json, "content", where));
  } else if (type == "Metaspace") {
    decoder.replacements.emplace_back(
        string_field(json, "replacement", where).value_or(std::string(kSpaceMark)), " ");
    if (decoder.replacements.back().first.empty())
      bad_input("{}: the replacement of 'Metaspace' is empty", where);
    decoder.drop_first_space = prepend_scheme(json, where) != "never";
  } else if (type == "Strip") {
    const Json* start = find_field(json, "start");
    const Json* stop = find_field(json, "stop");
    const bool one_space = require_string(json, "content", where) == " " &&
                           (start == nullptr || *start == 1) && (stop == nullptr || *stop == 0);
    if (!one_space)
      bad_input("{}: a decoder that strips anything but one space at the start is not supported", where);
    decoder.drop_first_space = true;
  } else if (type != "Fuse") {
    unsupported("decoder", type, "Sequence, ByteLevel, ByteFallback, Replace, Metaspace, Strip, Fuse", where);
  }
}

}  // namespace

Normalizer parse_normalizer(const Json& tokenizer, const std::string& where) {
  Normalizer normalizer;
  for (const Json* step : steps_of(tokenizer, "normalizer", "normalizers", where)) {
    add_normalizer_step(*step, where, normalizer);
  }
  return normalizer;
}

PreTokenizerDescription parse_pre_tokenizer(const Json& tokenizer, const std::string& where) {
  PreTokenizerDescription description;
  for (const Json* step : steps_of(tokenizer, "pre_tokenizer", "pretokenizers", where)) {
    add_pre_tokenizer_step(*step, where, description);
  }
  return description;
}

PieceDecoder parse_decoder(const Json& tokenizer, const std::string& where) {
  PieceDecoder decoder;
  for (const Json* step : steps_of(tokenizer, "decoder", "decoders", where))
    add_decoder_step(*step, where, decoder);
  return decoder;
}

std::string PieceDecoder::decode(const std::string& piece) const {
  if (byte_level) {
    if (auto bytes = byte_level_bytes(piece)) return *bytes;
    return piece;
  }
  if (byte_fallback) {
    if (const auto byte = byte_token_value(piece)) return std::string(1, static_cast<char>(*byte));
  }
  std::string text = piece;
  for (const auto& replacement : replacements)
    text = replace_all(text, replacement.first, replacement.second);
  return text;
}

std::optional<std::string> parse_leading_special_token(const Json& tokenizer, const std::string& where) {
  for (const Json* step : steps_of(tokenizer, "post_processor", "processors", where)) {
    if (require_string(*step, "type", where) != "TemplateProcessing") continue;
    const Json& single = require_field(*step, "single", where);
    if (!single.is_array()) bad_input("{}: 'single' of 'TemplateProcessing' must be a list", where);
    if (single.empty()) continue;
    if (const Json* special = find_field(single.front(), "SpecialToken"))
      return require_string(*special, "id", where);
  }
  return std::nullopt;
}

}  // namespace verbatim
