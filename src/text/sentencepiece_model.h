#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// The contents of a SentencePiece tokenizer.model that the engine itself needs. They are read without the
/// SentencePiece library, whose interface does not give all of them and which trusts its input.
struct SentencePieceModel {
  /// The numbers of the file format.
  enum class Type { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  struct Entry {
    std::string text;
    Type type = Type::kNormal;
    float score = 0.0f;
  };
  std::vector<Entry> entries;  ///< by id
  int32_t unknown = 0;
  int32_t bos = 1;  ///< for `unknown`, `bos` and `eos` -1 means that there is none
  int32_t eos = 2;
  bool add_dummy_prefix = true;  ///< a space is put before the text
  bool escape_spaces = true;     ///< spaces are written as U+2581
  bool merges_pairs = false;     ///< encodes by byte-pair merges, and not as a Unigram model or by words
  bool maps_characters = false;  ///< characters are replaced by others before the text is cut
  bool removes_spaces = true;    ///< spaces at the ends, and all but one of several, are removed
};

/// Reads and checks a model, so that it can be given to the library. Throws Error(kBadInput), naming `where`,
/// if it is malformed.
SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& where);

/// The serialized model with one setting changed: no space is put before the text.
std::string without_dummy_prefix(std::string_view bytes);

}  // namespace verbatim
