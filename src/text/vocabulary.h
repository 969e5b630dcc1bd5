#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer.h"

namespace verbatim {

/// The role of a token.
enum class PieceKind : uint8_t {
  kAbsent,   ///< a gap: no token has this id
  kNormal,   ///< stands for the text it spells
  kByte,     ///< "<0x0A>": stands for one byte
  kControl,  ///< steers the model and adds nothing to the text
};

/// A token of a vocabulary.
struct Piece {
  std::string text;   ///< its text as the vocabulary writes it: "▁the", "Ġthe", "<s>"
  std::string bytes;  ///< the bytes that it adds to a text: " the"
  PieceKind kind = PieceKind::kAbsent;
  bool added =
      false;  ///< put beside the model's own tokens: found as a whole, never built of parts of a word
};

/// Lets maps of strings be searched with a string_view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

/// The tokens of a model by id and by text, and the tokens that frame a text.
struct Vocabulary {
  std::vector<Piece> pieces;
  std::unordered_map<std::string, Token, TextHash, std::equal_to<>> ids;
  std::optional<Token> bos;
  std::optional<Token> eos;
  std::optional<Token> unknown;
  bool add_bos = false;
  std::vector<Token> before;      ///< what begins a text if add_bos is set; when empty, `bos` alone does
  std::vector<Token> after;       ///< what ends a text that nothing continues
  bool drop_first_space = false;  ///< encoding puts a space before the text, which decoding takes away again

  /// Sets the token `id`: its text (valid UTF-8), its kind and the bytes that it adds to a text.
  void set(Token id, const std::string& text, PieceKind kind, std::string bytes);
  std::optional<Token> find(std::string_view text) const;
  /// Whether a token is the model's own and stands for the text it spells, so that words are built of it.
  bool builds_words(Token token) const {
    const Piece& piece = pieces[static_cast<size_t>(token)];
    return piece.kind == PieceKind::kNormal && !piece.added;
  }
  bool has(int64_t id) const {
    return id >= 0 && id < static_cast<int64_t>(pieces.size()) && pieces[id].kind != PieceKind::kAbsent;
  }
};

/// The byte of a byte token ("<0x0A>"), or nullopt for any other text.
std::optional<unsigned char> byte_token_value(std::string_view text);

/// The text of the byte token of `byte`.
std::string byte_token_text(unsigned char byte);

/// `text` with every `from` replaced by `to`. `from` must not be empty.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

/// The character as which SentencePiece writes a space inside a piece, U+2581.
inline constexpr std::string_view kSpaceMark = "\u2581";

/// Checks a token id. Throws Error(kBadInput), naming `where`, unless a vocabulary of `entries` tokens may
/// use it: gaps are allowed, but not so many that a small file could demand a huge table.
void require_plausible_id(int64_t id, size_t entries, const std::string& where);

}  // namespace verbatim
