#include "text/pre_tokenizer.h"

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

std::string change(const PreTokenizerStep& step, std::string_view word, bool at_text_start) {
  using MarkFirst = PreTokenizerStep::MarkFirst;
  if (step.kind == PreTokenizerStep::Kind::kPrefixSpace) {
    return std::string(word.starts_with(' ') ? "" : " ").append(word);
  }
  std::string marked = replace_all(word, " ", step.mark);
  const bool wanted =
      step.mark_first == MarkFirst::kAlways || (step.mark_first == MarkFirst::kTextStart && at_text_start);
  if (wanted && marked.compare(0, step.mark.size(), step.mark) != 0) marked.insert(0, step.mark);
  return marked;
}

void change_all(const PreTokenizerStep& step, PreTokens& words, bool first) {
  PreTokens result;
  for (const TextRange& word : words.ranges) {
    const std::string_view text = std::string_view(words.text).substr(word.begin, word.end - word.begin);
    const size_t begin = result.text.size();
    result.text += change(step, text, first && word.begin == 0);
    result.ranges.push_back({begin, result.text.size()});
  }
  words = std::move(result);
}

}  // namespace

PreTokens pre_tokenize(const PreTokenizer& pre_tokenizer, std::string text, bool first) {
  PreTokens words{std::move(text), {}};
  if (!words.text.empty()) words.ranges.push_back({0, words.text.size()});
  for (const PreTokenizerStep& step : pre_tokenizer) {
    if (step.kind == PreTokenizerStep::Kind::kSplit) {
      split(step, words);
    } else {
      change_all(step, words, first);
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
