#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace verbatim {

using Token = int32_t;

/// The bytes of a text from offset `begin` up to offset `end`.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

/// What a text leaves out at its ends: up to `start` times `content` at its start, and up to `stop` times at
/// its end.
struct TextEdges {
  std::string content;
  size_t start = 0;
  size_t stop = 0;
};

/// A character that is something else in the text of tokens.
struct TextReplacement {
  std::string from;
  std::string to;
};

/// Turns text into tokens and back. Implementations are immutable and safe to share between threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  struct EncodeOptions {
    bool add_bos = true;        ///< begin with the tokens that begin a text, if the vocabulary asks for any
    bool add_end = false;       ///< end with the tokens that end a text, if the vocabulary asks for any
    bool parse_special = true;  ///< recognise special tokens written out in the text ("<|im_start|>")
    /// Unless null: the ranges of the text, in ascending order and apart, of which one must hold the whole of
    /// a special token for it to be recognised. Owned by the caller.
    const std::vector<ByteRange>* special_within = nullptr;
  };

  /// Turns a text into tokens. Throws Error(kBadInput) with the offset of the first bad byte if it is not
  /// valid UTF-8.
  virtual std::vector<Token> encode(std::string_view text, const EncodeOptions& options) const = 0;

  /// The bytes that a token adds to a text. They need not be whole UTF-8 characters, and control tokens add
  /// none. `first` says that the token begins the text: SentencePiece vocabularies that add a space there
  /// drop it again, WordPiece ones have a space before every other word.
  virtual std::string piece_bytes(Token token, bool first) const = 0;

  /// What the ends of a whole text leave out of what its tokens add.
  virtual TextEdges edges() const { return {}; }

  /// What replaces characters, one replacement after the other, in the bytes of neighbouring tokens. The
  /// bytes of a single token have been through it.
  virtual std::vector<TextReplacement> replacements() const { return {}; }

  /// The text of tokens, without control tokens. Bytes that are not UTF-8 stay as they are.
  std::string decode(const std::vector<Token>& tokens) const;

  virtual int32_t vocab_size() const = 0;
  virtual std::optional<Token> bos() const = 0;
  virtual std::optional<Token> eos() const = 0;
  virtual bool is_control(Token token) const = 0;
  /// The id of a token by its exact vocabulary text ("<|im_end|>"), for chat formats and stop tokens.
  virtual std::optional<Token> find(std::string_view text) const = 0;
  /// The exact vocabulary text of a token, the inverse of find(), valid as long as the tokenizer; empty if
  /// there is no such token.
  virtual std::string_view vocabulary_text(Token token) const = 0;
  /// The kind of vocabulary for people: "sentencepiece", "byte-level bpe", ...
  virtual std::string kind() const = 0;
};

/// A text with its characters replaced.
std::string with_replacements(std::string text, const std::vector<TextReplacement>& replacements);

/// A whole text without what its ends leave out.
std::string without_edges(std::string text, const TextEdges& edges);

/// Loads the vocabulary of a checkpoint. Throws Error(kBadInput) if there is none, or if it is malformed.
std::shared_ptr<const Tokenizer> load_tokenizer(const TokenizerSource& source);

}  // namespace verbatim
