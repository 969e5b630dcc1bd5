#include "structure/structure_cursor.h"

#include <algorithm>
#include <limits>

namespace verbatim {

void StructureCursor::apply(std::span<const int32_t> generated, std::span<float> logits) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const std::shared_ptr<const TokenMask> mask = structure_->allowed(generated, ends_, history_);
  // Tokens that end the sequence follow a rule of their own.
  const auto allowed = [&](int32_t token) {
    if (mask->complete) return true;
    return structure_->vocabulary().text(token).empty() && test_bit(mask->bits, token);
  };
  std::vector<std::pair<size_t, float>> ends;
  for (const int32_t token : ends_) {
    const auto index = static_cast<size_t>(token);
    if (token >= 0 && index < logits.size())
      ends.emplace_back(index, allowed(token) ? logits[index] : kNever);
  }
  const size_t words = std::min(mask->bits.size(), (logits.size() + 63) / 64);
  for (size_t word = 0; word < words; ++word) {
    const uint64_t bits = mask->bits[word];
    if (bits == ~uint64_t{0}) continue;
    const size_t first = word * 64;
    const size_t end = std::min(first + 64, logits.size());
    if (bits == 0) {
      std::fill(logits.begin() + static_cast<std::ptrdiff_t>(first),
                logits.begin() + static_cast<std::ptrdiff_t>(end), kNever);
      continue;
    }
    for (size_t i = first; i < end; ++i) logits[i] = (bits >> (i - first) & 1) != 0 ? logits[i] : kNever;
  }
  for (size_t i = words * 64; i < logits.size(); ++i) logits[i] = kNever;
  for (const auto& [index, logit] : ends) logits[index] = logit;
}

}  // namespace verbatim
