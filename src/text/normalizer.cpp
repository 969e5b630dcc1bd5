#include "text/normalizer.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include "base/error.h"
#include "base/utf8.h"

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

std::string replace_matches(const NormalizerStep& step, const std::string& text) {
  std::string result;
  size_t begin = 0;
  for (const TextRange& range : step.pattern.find_all(text)) {
    result.append(text, begin, range.begin - begin);
    result += step.content;
    begin = range.end;
  }
  result.append(text, begin);
  return result;
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

std::string apply_step(const NormalizerStep& step, const std::string& text) {
  switch (step.kind) {
    case Kind::kReplace:
      return replace_matches(step, text);
    case Kind::kPrepend:
      return text.empty() ? text : step.content + text;
    case Kind::kStripLeft:
      return strip(text, true, false);
    case Kind::kStripRight:
      return strip(text, false, true);
    default:
      return normalize_unicode(step.kind, text);
  }
}

// A few replacements in a row may each multiply the length.
constexpr size_t kLargestGrowth = 64;

}  // namespace

std::string normalize(const Normalizer& normalizer, std::string_view text) {
  std::string result(text);
  for (const NormalizerStep& step : normalizer) {
    result = apply_step(step, result);
    if (result.size() > (text.size() + 1024) * kLargestGrowth) {
      bad_input("the vocabulary's normalizer makes the text more than {} times longer", kLargestGrowth);
    }
  }
  return result;
}

}  // namespace verbatim
