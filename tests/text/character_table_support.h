#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace verbatim::test {

/// Builds SentencePiece's table of replacements by its definition: the size of a double-array trie, the trie,
/// and the replacements, each ended by a zero byte.
class CharacterTable {
 public:
  explicit CharacterTable(const std::map<std::string, std::string>& replacements) : entries_(replacements) {
    units_.assign(1024, 0);
    used_.assign(1024, false);
    used_[0] = true;
    for (const auto& [text, replacement] : entries_) {
      places_[text] = static_cast<uint32_t>(texts_.size());
      texts_ += replacement + '\0';
    }
    add_children(0, "");
  }

  std::string bytes() const {
    std::string result;
    append_unit(static_cast<uint32_t>(units_.size() * 4), result);
    for (const uint32_t unit : units_) append_unit(unit, result);
    return result + texts_;
  }

 private:
  static void append_unit(uint32_t unit, std::string& bytes) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(unit >> (8 * i) & 0xFF);
  }

  /// Places the children of the node at `at`, to which the bytes of `text` lead.
  void add_children(uint32_t at, const std::string& text) {
    std::map<unsigned char, bool> labels;
    for (const auto& entry : entries_) {
      if (entry.first.size() > text.size() && entry.first.starts_with(text)) {
        labels[static_cast<unsigned char>(entry.first[text.size()])] = true;
      }
    }
    const bool ends = places_.count(text) != 0;
    uint32_t base = 1;
    const auto is_free = [&] {
      if (used_[base]) return false;
      for (const auto& label : labels) {
        if (used_[base ^ label.first]) return false;
      }
      return true;
    };
    while (!is_free()) ++base;
    used_[base] = true;
    units_[at] |= (at ^ base) << 10 | (ends ? 1u << 8 : 0u);
    if (ends) units_[base] = places_.at(text) | 1u << 31;
    for (const auto& label : labels) used_[base ^ label.first] = true;
    for (const auto& label : labels) {
      units_[base ^ label.first] = label.first;
      add_children(base ^ label.first, text + static_cast<char>(label.first));
    }
  }

  std::map<std::string, std::string> entries_;
  std::map<std::string, uint32_t> places_;
  std::vector<uint32_t> units_;
  std::vector<bool> used_;
  std::string texts_;
};

/// Writes bytes as base64.
inline std::string base64_text(const std::string& bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += i + j > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * j) & 63];
    }
  }
  return text;
}

}  // namespace verbatim::test
