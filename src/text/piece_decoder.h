#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/pattern.h"
#include "text/vocabulary.h"

namespace verbatim {

/// One step of turning a token of the vocabulary back into text.
struct DecoderStep {
  enum class Kind {
    kByteLevel,     ///< characters stand for bytes as in GPT-2's vocabularies, unless one of a text does not
    kByteFallback,  ///< "<0x0A>" stands for one byte
    kReplace,       ///< every match of `pattern` becomes `content`
    kMark,          ///< `content` is a space; with `at_start`, nothing where the token begins the text
    kStrip,      ///< up to `start` times the character `content` is left out at the start, `stop` at the end
    kWordPiece,  ///< a token that does not begin with `content` is preceded by a space, unless it is first
    kCleanUp,    ///< spaces before punctuation and English contractions are left out
    kWordEnd,    ///< `content` ends a word and becomes a space
    kSpaceBetween,  ///< every token but the first is preceded by a space
  };
  Kind kind = Kind::kReplace;
  Pattern pattern;
  std::string content;
  size_t start = 0;
  size_t stop = 0;
  bool at_start = false;
  bool joined = false;  ///< the step applies to the whole text at once
};

/// Turns the tokens of a vocabulary back into text, each by itself, and says what a whole text leaves out at
/// its ends.
struct PieceDecoder {
  std::vector<DecoderStep> steps;
  TextEdges edges;
  std::vector<TextReplacement> replacements;  ///< see Tokenizer::replacements
  bool drop_first_space = false;              ///< see Vocabulary::drop_first_space
  std::string where = "the vocabulary";       ///< names the file in errors

  /// What a token adds to a text. `first` says that it begins the text. Added tokens do not write bytes as
  /// characters. Throws Error(kBadInput) if a step cannot treat the token by itself, or makes it absurdly
  /// long.
  std::string decode(std::string_view piece, bool first, bool added) const;
  /// Whether a token may add something else to a text that it begins.
  bool looks_at_place() const;
  /// Refuses a vocabulary with a token that would change how the tokens beside it are decoded.
  void require_independent(const Vocabulary& vocabulary) const;
  /// Whether byte tokens stand for bytes.
  bool has_byte_tokens() const;
};

}  // namespace verbatim
