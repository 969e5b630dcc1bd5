#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/pattern.h"

namespace verbatim {

/// How the matches are treated when a text is split.
enum class SplitBehavior {
  kIsolated,            ///< each match is a word of its own
  kRemoved,             ///< matches are removed
  kMergedWithPrevious,  ///< each match ends the word before it
  kMergedWithNext,      ///< each match begins the word after it
  kContiguous,          ///< neighbouring matches form one word
};

/// One step of cutting a text into words.
struct PreTokenizerStep {
  enum class Kind {
    kSplit,        ///< cuts every word at the matches of `pattern`
    kPrefixSpace,  ///< puts a space before every word that does not begin with one
    kMark,         ///< writes every space as `mark`, and puts one first as `mark_first` says
    kBytes,        ///< writes every byte as GPT-2's character for it
    kScripts,      ///< cuts every word where the script changes, and drops spaces at its start
    kFixedLength,  ///< cuts every word into pieces of `length` characters
  };
  enum class MarkFirst { kNever, kTextStart, kAlways };

  Kind kind = Kind::kSplit;
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  ///< the stretches between the matches are treated as the matches
  std::string mark;
  MarkFirst mark_first = MarkFirst::kNever;
  size_t length = 0;
};

using PreTokenizer = std::vector<PreTokenizerStep>;

/// The words of a text, as they are encoded one by one: the text and the ranges of its words.
struct PreTokens {
  std::string text;
  std::vector<TextRange> ranges;
};

/// Cuts a text (valid UTF-8) into words, which are encoded one by one. `first` says that it begins the whole
/// text. Throws Error(kBadInput) if the steps make the text absurdly long.
PreTokens pre_tokenize(const PreTokenizer& pre_tokenizer, std::string text, bool first);

/// Makes the step that cuts at a regular expression. Throws Error(kBadInput), naming `where`, if that is
/// malformed.
PreTokenizerStep split_step(const std::string& pattern, SplitBehavior behavior, const std::string& where);

}  // namespace verbatim
