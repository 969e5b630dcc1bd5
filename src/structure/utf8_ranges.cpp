#include "structure/utf8_ranges.h"

#include <fmt/format.h>

#include <algorithm>

namespace verbatim {

namespace {

constexpr uint32_t kFirstSurrogate = 0xD800;
constexpr uint32_t kLastSurrogate = 0xDFFF;

/// The bytes of a character that is encoded in `length` bytes.
std::array<uint8_t, 4> encoded(uint32_t character, int32_t length) {
  constexpr uint8_t kLead[] = {0x00, 0xC0, 0xE0, 0xF0};
  std::array<uint8_t, 4> bytes = {};
  for (int32_t i = length - 1; i > 0; --i) {
    bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(0x80 | (character & 0x3F));
    character >>= 6;
  }
  bytes[0] = static_cast<uint8_t>(kLead[length - 1] | character);
  return bytes;
}

/// Adds the sequences of a range whose characters all have `length` bytes.
void add_ranges(uint32_t first, uint32_t last, int32_t length, std::vector<ByteRanges>& found) {
  for (int32_t i = 1; i < length; ++i) {
    const uint32_t below = (uint32_t{1} << (6 * i)) - 1;
    if ((first & ~below) == (last & ~below)) continue;
    if ((first & below) != 0) {
      add_ranges(first, first | below, length, found);
      add_ranges((first | below) + 1, last, length, found);
      return;
    }
    if ((last & below) != below) {
      add_ranges(first, (last & ~below) - 1, length, found);
      add_ranges(last & ~below, last, length, found);
      return;
    }
  }
  ByteRanges& bytes = found.emplace_back();
  bytes.length = length;
  const auto low = encoded(first, length);
  const auto high = encoded(last, length);
  for (size_t i = 0; i < static_cast<size_t>(length); ++i) bytes.range[i] = {low[i], high[i]};
}

}  // namespace

std::vector<ByteRanges> utf8_ranges(std::span<const CharacterRange> ranges) {
  struct Part {
    uint32_t first;
    uint32_t last;
    int32_t length;
  };
  constexpr Part kParts[] = {{0, 0x7F, 1},
                             {0x80, 0x7FF, 2},
                             {0x800, kFirstSurrogate - 1, 3},
                             {kLastSurrogate + 1, 0xFFFF, 3},
                             {0x10000, kLastCharacter, 4}};
  std::vector<ByteRanges> found;
  for (const CharacterRange& range : ranges) {
    for (const Part& part : kParts) {
      const uint32_t first = std::max(range.first, part.first);
      const uint32_t last = std::min(range.last, part.last);
      if (first <= last) add_ranges(first, last, part.length, found);
    }
  }
  return found;
}

std::vector<CharacterRange> joined(std::vector<CharacterRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CharacterRange& a, const CharacterRange& b) { return a.first < b.first; });
  std::vector<CharacterRange> result;
  for (const CharacterRange& range : ranges) {
    if (!result.empty() && range.first <= result.back().last + 1) {
      result.back().last = std::max(result.back().last, range.last);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

std::vector<CharacterRange> complement(std::span<const CharacterRange> joined_ranges) {
  std::vector<CharacterRange> result;
  uint32_t next = 0;
  for (const CharacterRange& range : joined_ranges) {
    if (range.first > next) result.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCharacter) result.push_back({next, kLastCharacter});
  return result;
}

bool has_character(std::span<const CharacterRange> ranges, uint32_t character) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const CharacterRange& range) {
    return range.first <= character && character <= range.last;
  });
}

void append_utf8(uint32_t character, std::string& text) {
  const int32_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
  const auto bytes = encoded(character, length);
  text.append(bytes.begin(), bytes.begin() + length);
}

std::string json_escaped(std::string_view text) {
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  std::string result;
  for (const char c : text) {
    const size_t found = kEscaped.find(c);
    if (found != std::string_view::npos) {
      result += '\\';
      result += kLetters[found];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace verbatim
