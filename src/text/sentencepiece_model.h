#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// What the engine itself needs to know of a SentencePiece tokenizer.model, read without the library: its
/// interface does not tell all of this, and it trusts its input.
struct SentencePieceModel {
  /// The numbers of the file format.
  enum class Type { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  struct Entry {
    std::string text;
    Type type = Type::kNormal;
  };
  std::vector<Entry> entries;  ///< by id
  int32_t unknown = 0;
  int32_t bos = 1;  ///< -1: none, as for the others
  int32_t eos = 2;
  bool add_dummy_prefix = true;  ///< a space goes before the text
  bool escape_spaces = true;     ///< spaces are written as U+2581
};

/// Throws Error(kBadInput), naming `where`, for anything malformed: the library may be given what passes.
SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& where);

/// The serialized model with one setting changed: no space goes before the text.
std::string without_dummy_prefix(std::string_view bytes);

}  // namespace verbatim
