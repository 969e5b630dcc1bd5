#include "text/normalize_characters.h"

#include <unicode/brkiter.h>
#include <unicode/uchar.h>

#include <memory>

#include "base/utf8.h"
#include "text/bounded_text.h"

namespace verbatim {

namespace {

/// Calls `change` with every character: its number and its bytes.
template <typename Change>
void for_each_character(std::string_view text, Change&& change) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text[i]);
    change(static_cast<UChar32>(utf8_character(text, i)), text.substr(i, length));
    i += length;
  }
}

void append_character(UChar32 c, std::string& text) {
  char bytes[4];
  int32_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, c);
  text.append(bytes, static_cast<size_t>(length));
}

bool is_within(UChar32 c, UChar32 first, UChar32 last) {
  return c >= first && c <= last;
}

// The blocks that BERT's own code lists; the sixth begins later there than in Unicode.
bool is_ideograph(UChar32 c) {
  return is_within(c, 0x4E00, 0x9FFF) || is_within(c, 0x3400, 0x4DBF) || is_within(c, 0x20000, 0x2A6DF) ||
         is_within(c, 0x2A700, 0x2B73F) || is_within(c, 0x2B740, 0x2B81F) || is_within(c, 0x2B920, 0x2CEAF) ||
         is_within(c, 0xF900, 0xFAFF) || is_within(c, 0x2F800, 0x2FA1F);
}

/// The most bytes of a cluster that is looked up as a whole.
constexpr size_t kLongestCluster = 5;

void append_mapped(const CharacterMap& map, std::string_view cluster, BoundedText& text) {
  if (cluster.size() <= kLongestCluster) {
    if (const auto mapped = map.find(cluster)) return text.append(*mapped);
  }
  for_each_character(cluster, [&](UChar32, std::string_view character) {
    text.append(map.find(character).value_or(character));
  });
}

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

/// Calls `use` with every extended grapheme cluster.
template <typename Use>
void for_each_cluster(std::string_view text, Use&& use) {
  if (is_ascii(text)) {
    // The only cluster of several characters is the end of a line.
    for (size_t i = 0; i < text.size();) {
      const size_t length = text.substr(i, 2) == "\r\n" ? 2 : 1;
      use(text.substr(i, length));
      i += length;
    }
    return;
  }
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  UText input = UTEXT_INITIALIZER;
  utext_openUTF8(&input, text.data(), static_cast<int64_t>(text.size()), &status);
  if (U_SUCCESS(status)) breaks->setText(&input, status);
  if (U_FAILURE(status)) {
    utext_close(&input);
    bad_input("the text cannot be cut into characters: {}", u_errorName(status));
  }
  const std::unique_ptr<UText, decltype(&utext_close)> closing(&input, utext_close);
  size_t begin = 0;
  while (begin < text.size()) {
    const int32_t end = breaks->next();
    if (end == icu::BreakIterator::DONE || static_cast<size_t>(end) <= begin) break;
    use(text.substr(begin, static_cast<size_t>(end) - begin));
    begin = static_cast<size_t>(end);
  }
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string result;
  for_each_character(text, [&](UChar32 c, std::string_view) {
    if (c == 0x130) {
      result += "i\u0307";  // This is the one character that becomes two.
    } else {
      append_character(u_tolower(c), result);
    }
  });
  return result;
}

std::string without_marks(std::string_view text, bool spacing_too) {
  const uint32_t dropped = spacing_too ? U_GC_M_MASK : U_GC_MN_MASK;
  std::string result;
  for_each_character(text, [&](UChar32 c, std::string_view bytes) {
    if ((U_GET_GC_MASK(c) & dropped) == 0) result += bytes;
  });
  return result;
}

std::string cleaned(std::string_view text) {
  std::string result;
  for_each_character(text, [&](UChar32 c, std::string_view bytes) {
    if (u_isUWhiteSpace(c) != 0 && (c < 0x80 ? c == '\t' || c == '\n' || c == '\r' || c == ' ' : c != 0x85)) {
      result += ' ';
    } else if (c != 0xFFFD && (U_GET_GC_MASK(c) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) == 0) {
      result += bytes;
    }
  });
  return result;
}

std::string with_spaced_ideographs(std::string_view text) {
  std::string result;
  for_each_character(text, [&](UChar32 c, std::string_view bytes) {
    if (is_ideograph(c)) {
      result.append(" ").append(bytes).append(" ");
    } else {
      result += bytes;
    }
  });
  return result;
}

std::string without_nmt_controls(std::string_view text) {
  std::string result;
  for_each_character(text, [&](UChar32 c, std::string_view bytes) {
    const bool dropped = is_within(c, 0x01, 0x08) || c == 0x0B || is_within(c, 0x0E, 0x1F) || c == 0x7F ||
                         c == 0x8F || c == 0x9F;
    const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                       is_within(c, 0x200B, 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == 0xFFFD;
    if (space) {
      result += ' ';
    } else if (!dropped) {
      result += bytes;
    }
  });
  return result;
}

std::string mapped_characters(const CharacterMap& map, std::string_view text, BoundedText result) {
  for_each_cluster(text, [&](std::string_view cluster) { append_mapped(map, cluster, result); });
  return result.take();
}

}  // namespace verbatim
