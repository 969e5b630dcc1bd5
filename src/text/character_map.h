#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// SentencePiece's table of what characters become before a text is encoded, as a tokenizer.json holds it: a
/// double-array trie over the bytes of characters, whose values are places of a block of texts, each ended by
/// a zero byte. Immutable and safe to share between threads.
class CharacterMap {
 public:
  /// Parses the table. Throws Error(kBadInput), naming `where`, if it is malformed. No content of the table
  /// can lead outside it.
  CharacterMap(std::string bytes, const std::string& where);

  /// What a text becomes that has one of the table's entries as its beginning, by the shortest of these;
  /// nullopt if there is none.
  std::optional<std::string_view> find(std::string_view text) const;

 private:
  std::string texts_;
  std::vector<uint32_t> units_;
};

/// The bytes that a base64 text stands for; nullopt if it is none.
std::optional<std::string> base64_bytes(std::string_view text);

}  // namespace verbatim
