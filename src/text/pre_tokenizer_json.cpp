#include <algorithm>
#include <map>

#include "base/error.h"
#include "text/byte_level.h"
#include "text/step_json.h"
#include "text/tokenizer_json_steps.h"

namespace verbatim {

namespace {

using PreTokenizerKind = PreTokenizerStep::Kind;

// Classes of characters as the definition means them, which differ from those that \s and \w stand for here:
// white space by Unicode's property, and words of letters, marks, digits, connecting punctuation, joiners and
// letters in circles.
constexpr const char* kWhiteSpace =
    R"([\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}])";
constexpr const char* kWordsAndRest =
    R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}]+|)"
    R"([^\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})"
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]+)";
constexpr const char* kPunctuation = R"([\p{P}$+<=>^`|~])";

PreTokenizerStep pre_tokenizer_step(PreTokenizerKind kind) {
  PreTokenizerStep step;
  step.kind = kind;
  return step;
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

void add_metaspace(const Json& json, const std::string& where, PreTokenizer& steps) {
  using MarkFirst = PreTokenizerStep::MarkFirst;
  PreTokenizerStep step = pre_tokenizer_step(PreTokenizerKind::kMark);
  step.mark = character_field(json, "replacement", std::string(kSpaceMark), where);
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
  const auto is_bytes = [](const PreTokenizerStep& step) { return step.kind == PreTokenizerKind::kBytes; };
  if (std::any_of(steps.begin(), steps.end(), is_bytes)) {
    bad_input("{}: the pre-tokenizer 'ByteLevel' stands twice in the sequence, which is not supported",
              where);
  }
  if (bool_field(json, "add_prefix_space", where).value_or(true)) {
    steps.push_back(pre_tokenizer_step(PreTokenizerKind::kPrefixSpace));
  }
  if (bool_field(json, "use_regex", where).value_or(true)) {
    steps.push_back(split_step(kGpt2Pattern, SplitBehavior::kIsolated, where));
  }
  steps.push_back(pre_tokenizer_step(PreTokenizerKind::kBytes));
}

void add_split(const Json& json, const std::string& where, PreTokenizer& steps) {
  PreTokenizerStep step;
  step.pattern = parse_pattern(json, where);
  step.behavior = parse_behavior(json, where);
  step.invert = bool_field(json, "invert", where).value_or(false);
  steps.push_back(std::move(step));
}

void add_fixed_length(const Json& json, const std::string& where, PreTokenizer& steps) {
  PreTokenizerStep step = pre_tokenizer_step(PreTokenizerKind::kFixedLength);
  constexpr size_t kStandardLength = 5;
  step.length = find_field(json, "length") != nullptr ? count_field(json, "length", where) : kStandardLength;
  if (step.length == 0) bad_input("{}: the 'length' of 'FixedLength' is 0", where);
  steps.push_back(std::move(step));
}

void add_pre_tokenizer_step(const Json& json, const std::string& where, PreTokenizer& steps) {
  const std::string type = require_string(json, "type", where);
  const auto cut = [&](const char* pattern, SplitBehavior behavior) {
    steps.push_back(split_step(pattern, behavior, where));
  };
  if (type == "ByteLevel") {
    add_byte_level(json, where, steps);
  } else if (type == "Split") {
    add_split(json, where, steps);
  } else if (type == "Digits") {
    const bool each = bool_field(json, "individual_digits", where).value_or(false);
    cut(R"(\p{N})", each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
  } else if (type == "Punctuation") {
    const bool stated = find_field(json, "behavior") != nullptr;
    cut(kPunctuation, stated ? parse_behavior(json, where) : SplitBehavior::kIsolated);
  } else if (type == "BertPreTokenizer") {
    cut(kWhiteSpace, SplitBehavior::kRemoved);
    cut(kPunctuation, SplitBehavior::kIsolated);
  } else if (type == "Whitespace") {
    cut(kWordsAndRest, SplitBehavior::kRemoved);
    steps.back().invert = true;
  } else if (type == "WhitespaceSplit") {
    cut(kWhiteSpace, SplitBehavior::kRemoved);
  } else if (type == "CharDelimiterSplit") {
    PreTokenizerStep step;
    step.pattern.literal = character_field(json, "delimiter", {}, where);
    step.behavior = SplitBehavior::kRemoved;
    steps.push_back(std::move(step));
  } else if (type == "UnicodeScripts") {
    steps.push_back(pre_tokenizer_step(PreTokenizerKind::kScripts));
  } else if (type == "FixedLength") {
    add_fixed_length(json, where, steps);
  } else if (type == "Metaspace") {
    add_metaspace(json, where, steps);
  } else {
    refuse_step("pre-tokenizer", type,
                "Sequence, ByteLevel, Split, Digits, Punctuation, BertPreTokenizer, Whitespace, "
                "WhitespaceSplit, CharDelimiterSplit, UnicodeScripts, FixedLength, Metaspace",
                where);
  }
}

}  // namespace

PreTokenizer parse_pre_tokenizer(const Json& tokenizer, const std::string& where) {
  return parse_steps(tokenizer, "pre_tokenizer", "pretokenizers", where, add_pre_tokenizer_step);
}

}  // namespace verbatim
