#include "text/normalizer.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/bounded_text.h"
#include "text/byte_level.h"
#include "text/normalize_characters.h"

namespace verbatim {

namespace {

using Kind = NormalizerStep::Kind;

const icu::Normalizer2* unicode_normalizer(Kind kind, UErrorCode& status) {
  switch (kind) {
    case Kind::kNfc:
      return icu::Normalizer2::getNFCInstance(status);
    case Kind::kNfd:
      return icu::Normalizer2::getNFDInstance(status);
    case Kind::kNfkc:
      return icu::Normalizer2::getNFKCInstance(status);
    default:
      return icu::Normalizer2::getNFKDInstance(status);
  }
}

std::string normalize_unicode(Kind kind, const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = unicode_normalizer(kind, status);
  std::string result;
  if (U_SUCCESS(status)) {
    icu::StringByteSink<std::string> sink(&result, static_cast<int32_t>(text.size()));
    normalizer->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink,
                              nullptr, status);
  }
  if (U_FAILURE(status)) bad_input("the text cannot be normalized: {}", u_errorName(status));
  return result;
}

std::string replace_matches(const NormalizerStep& step, std::string_view text, BoundedText result) {
  size_t begin = 0;
  for (const TextRange& range : step.pattern.find_all(text)) {
    result.append(text.substr(begin, range.begin - begin));
    result.append(step.content);
    begin = range.end;
  }
  result.append(text.substr(begin));
  return result.take();
}

bool is_space_at(const std::string& text, size_t offset) {
  return u_isUWhiteSpace(static_cast<UChar32>(utf8_character(text, offset))) != 0;
}

std::string strip(const std::string& text, bool left, bool right) {
  size_t begin = 0;
  size_t end = text.size();
  while (left && begin < end && is_space_at(text, begin)) begin += utf8_length(text[begin]);
  while (right && end > begin) {
    size_t last = end - 1;
    while (last > begin && (static_cast<unsigned char>(text[last]) & 0xC0u) == 0x80u) --last;
    if (!is_space_at(text, last)) break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

// `empty` has the limit for what the step makes of the text.
std::string apply_step(const NormalizerStep& step, const std::string& text, BoundedText empty) {
  switch (step.kind) {
    case Kind::kReplace:
      return replace_matches(step, text, std::move(empty));
    case Kind::kPrepend:
      return text.empty() ? text : step.content + text;
    case Kind::kStripLeft:
      return strip(text, true, false);
    case Kind::kStripRight:
      return strip(text, false, true);
    case Kind::kLowercase:
      return lower_case(text);
    case Kind::kDropMarks:
      return without_marks(text, true);
    case Kind::kDropAccents:
      return without_marks(text, false);
    case Kind::kClean:
      return cleaned(text);
    case Kind::kSpaceIdeographs:
      return with_spaced_ideographs(text);
    case Kind::kNmt:
      return without_nmt_controls(text);
    case Kind::kByteLevel:
      return byte_level_text(text);
    case Kind::kMapCharacters:
      return mapped_characters(*step.map, text, std::move(empty));
    default:
      return normalize_unicode(step.kind, text);
  }
}

}  // namespace

std::string normalize(const Normalizer& normalizer, std::string_view text) {
  std::string result(text);
  for (const NormalizerStep& step : normalizer) {
    BoundedText bounded(text.size(), "normalizer");
    bounded.append(apply_step(step, result, bounded));
    result = bounded.take();
  }
  return result;
}

}  // namespace verbatim
