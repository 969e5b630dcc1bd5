#include "text/pre_tokenizer.h"

#include <unicode/uscript.h>

#include "base/utf8.h"
#include "text/bounded_text.h"
#include "text/byte_level.h"
#include "text/vocabulary.h"

namespace verbatim {

namespace {

struct Part {
  TextRange range;
  bool is_match;
};

std::vector<Part> find_parts(const PreTokenizerStep& step, std::string_view text) {
  std::vector<Part> parts;
  size_t begin = 0;
  for (const TextRange& match : step.pattern.find_all(text)) {
    if (match.begin > begin) parts.push_back({{begin, match.begin}, step.invert});
    parts.push_back({match, !step.invert});
    begin = match.end;
  }
  if (begin < text.size()) parts.push_back({{begin, text.size()}, step.invert});
  return parts;
}

// Whether a part goes into the same word as the part before it.
bool joins(SplitBehavior behavior, const Part& before, const Part& part) {
  switch (behavior) {
    case SplitBehavior::kMergedWithPrevious:
      return part.is_match && !before.is_match;
    case SplitBehavior::kMergedWithNext:
      return before.is_match && !part.is_match;
    case SplitBehavior::kContiguous:
      return part.is_match == before.is_match;
    default:
      return false;
  }
}

void split(const PreTokenizerStep& step, PreTokens& words) {
  std::vector<TextRange> result;
  for (const TextRange& word : words.ranges) {
    const std::string_view text = std::string_view(words.text).substr(word.begin, word.end - word.begin);
    const std::vector<Part> parts = find_parts(step, text);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (step.behavior == SplitBehavior::kRemoved && parts[i].is_match) continue;
      const TextRange range{word.begin + parts[i].range.begin, word.begin + parts[i].range.end};
      if (i > 0 && joins(step.behavior, parts[i - 1], parts[i])) {
        result.back().end = range.end;
      } else {
        result.push_back(range);
      }
    }
  }
  words.ranges = std::move(result);
}

/// The script of a character as SentencePiece sees it: Japanese is written in one, and a space, as what has
/// no script that is known, belongs to any.
UScriptCode script_of(uint32_t c) {
  constexpr uint32_t kLongVowel = 0x30FC;
  if (c == ' ') return USCRIPT_UNKNOWN;
  if (c == kLongVowel) return USCRIPT_HAN;
  UErrorCode status = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(static_cast<UChar32>(c), &status);
  if (U_FAILURE(status)) return USCRIPT_UNKNOWN;
  return script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA ? USCRIPT_HAN : script;
}

void split_at_scripts(PreTokens& words) {
  std::vector<TextRange> result;
  for (const TextRange& word : words.ranges) {
    UScriptCode last = USCRIPT_UNKNOWN;
    for (size_t i = word.begin; i < word.end; i += utf8_length(words.text[i])) {
      const UScriptCode script = script_of(utf8_character(words.text, i));
      if (script == USCRIPT_UNKNOWN) continue;
      if (script != last) {
        if (last != USCRIPT_UNKNOWN) result.back().end = i;
        result.push_back({i, word.end});
      }
      last = script;
    }
  }
  words.ranges = std::move(result);
}

void split_at_length(size_t length, PreTokens& words) {
  std::vector<TextRange> result;
  for (const TextRange& word : words.ranges) {
    size_t count = 0;
    for (size_t i = word.begin; i < word.end; i += utf8_length(words.text[i])) {
      if (count % length == 0) {
        if (count > 0) result.back().end = i;
        result.push_back({i, word.end});
      }
      ++count;
    }
  }
  words.ranges = std::move(result);
}

std::string change(const PreTokenizerStep& step, std::string_view word, bool at_text_start) {
  using MarkFirst = PreTokenizerStep::MarkFirst;
  if (step.kind == PreTokenizerStep::Kind::kBytes) return byte_level_text(word);
  if (step.kind == PreTokenizerStep::Kind::kPrefixSpace) {
    return std::string(word.starts_with(' ') ? "" : " ").append(word);
  }
  std::string marked = replace_all(word, " ", step.mark);
  const bool wanted =
      step.mark_first == MarkFirst::kAlways || (step.mark_first == MarkFirst::kTextStart && at_text_start);
  if (wanted && marked.compare(0, step.mark.size(), step.mark) != 0) marked.insert(0, step.mark);
  return marked;
}

void change_all(const PreTokenizerStep& step, PreTokens& words, bool first, BoundedText text) {
  std::vector<TextRange> ranges;
  ranges.reserve(words.ranges.size());
  for (const TextRange& word : words.ranges) {
    const size_t begin = text.size();
    const std::string_view old = std::string_view(words.text).substr(word.begin, word.end - word.begin);
    text.append(change(step, old, first && word.begin == 0));
    ranges.push_back({begin, text.size()});
  }
  words = {text.take(), std::move(ranges)};
}

}  // namespace

PreTokens pre_tokenize(const PreTokenizer& pre_tokenizer, std::string text, bool first) {
  using Kind = PreTokenizerStep::Kind;
  const BoundedText empty(text.size(), "pre-tokenizer");
  PreTokens words{std::move(text), {}};
  if (!words.text.empty()) words.ranges.push_back({0, words.text.size()});
  for (const PreTokenizerStep& step : pre_tokenizer) {
    if (step.kind == Kind::kSplit) {
      split(step, words);
    } else if (step.kind == Kind::kScripts) {
      split_at_scripts(words);
    } else if (step.kind == Kind::kFixedLength) {
      split_at_length(step.length, words);
    } else {
      change_all(step, words, first, empty);
    }
  }
  return words;
}

PreTokenizerStep split_step(const std::string& pattern, SplitBehavior behavior, const std::string& where) {
  PreTokenizerStep step;
  step.pattern.regex.emplace(pattern, where);
  step.behavior = behavior;
  return step;
}

}  // namespace verbatim
