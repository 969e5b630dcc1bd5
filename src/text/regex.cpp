#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <new>

#include "base/error.h"
#include "base/utf8.h"

namespace verbatim {

namespace {

constexpr size_t kLongestPattern = 20'000;  // bytes
constexpr size_t kLargestJit = 64 << 10;    // bytes of compiled pattern that are worth translating further
constexpr uint32_t kHeapLimit = 64 << 10;   // KiB
constexpr uint64_t kStepsPerSearch =
    200'000;  // and some more for every byte of the text, for runs of white space
constexpr uint64_t kStepsPerByte = 16;

pcre2_code* code_of(const std::shared_ptr<void>& pointer) {
  return static_cast<pcre2_code*>(pointer.get());
}

std::shared_ptr<void> own_code(pcre2_code* code) {
  return {code, [](void* p) { pcre2_code_free(static_cast<pcre2_code*>(p)); }};
}

}  // namespace

Regex::Regex(const std::string& pattern, const std::string& where) : pattern_(pattern) {
  if (pattern.size() > kLongestPattern) {
    bad_input("{}: a pattern of {} bytes is too long (the limit is {})", where, pattern.size(),
              kLongestPattern);
  }
  int error = 0;
  size_t offset = 0;
  const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  code_ = own_code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options,
                                 &error, &offset, nullptr));
  if (code_ == nullptr) {
    PCRE2_UCHAR message[128] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    bad_input("{}: the pattern is not a valid regular expression: {} at byte {}", where,
              reinterpret_cast<const char*>(message), offset);
  }
  size_t size = 0;
  pcre2_pattern_info(code_of(code_), PCRE2_INFO_SIZE, &size);
  if (size <= kLargestJit)
    pcre2_jit_compile(code_of(code_), PCRE2_JIT_COMPLETE);  // without it, matching interprets
}

Regex::Matches::Matches(const Regex& regex, std::string_view text) : regex_(&regex), text_(text) {
  match_data_ = {pcre2_match_data_create(1, nullptr),
                 [](void* p) { pcre2_match_data_free(static_cast<pcre2_match_data*>(p)); }};
  context_ = {pcre2_match_context_create(nullptr),
              [](void* p) { pcre2_match_context_free(static_cast<pcre2_match_context*>(p)); }};
  if (match_data_ == nullptr || context_ == nullptr) throw std::bad_alloc();
  auto* context = static_cast<pcre2_match_context*>(context_.get());
  const uint64_t steps = kStepsPerSearch + kStepsPerByte * text.size();
  pcre2_set_match_limit(context, static_cast<uint32_t>(std::min<uint64_t>(steps, UINT32_MAX)));
  pcre2_set_heap_limit(context, kHeapLimit);
}

std::optional<TextRange> Regex::Matches::next() {
  auto* data = static_cast<pcre2_match_data*>(match_data_.get());
  auto* context = static_cast<pcre2_match_context*>(context_.get());
  while (offset_ < text_.size()) {
    const auto search = [&](uint32_t options) {
      return pcre2_match(code_of(regex_->code_), reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(),
                         offset_, PCRE2_NO_UTF_CHECK | options, data, context);
    };
    int result = search(0);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) result = search(PCRE2_NO_JIT);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      PCRE2_UCHAR message[128] = {};
      pcre2_get_error_message(result, message, sizeof(message));
      bad_input("the vocabulary's pattern '{}' cannot be applied to this text: {}",
                regex_->pattern_.substr(0, 80), reinterpret_cast<const char*>(message));
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data);
    // \K can move the start of a match behind its end or before the last match.
    const TextRange range{std::max(ends[0], offset_), ends[1]};
    if (range.end > range.begin) {
      offset_ = range.end;
      return range;
    }
    const size_t at = std::max(offset_, ends[1]);
    offset_ = at < text_.size() ? at + utf8_length(text_[at]) : text_.size();
  }
  return std::nullopt;
}

}  // namespace verbatim
