#include "structure/structure_cursor.h"

#include <algorithm>
#include <limits>

namespace verbatim {

/// Whether the only token of a mask may come: it must be none that ends the sequence instead, nor one that
/// something else forbids already.
bool StructureCursor::holds_to_first(const TokenMask& mask, std::span<const float> logits) const {
  const auto index = static_cast<size_t>(mask.first);
  if (index < logits.size() && !(logits[index] > -std::numeric_limits<float>::infinity())) return false;
  return structure_->vocabulary().text(mask.first).empty() ||
         std::find(ends_.begin(), ends_.end(), mask.first) == ends_.end();
}

void StructureCursor::apply(std::span<const int32_t> generated, std::span<float> logits) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const std::shared_ptr<const TokenMask> mask = structure_->allowed(generated, ends_, history_);
  if (mask->only && holds_to_first(*mask, logits)) {
    const auto index = static_cast<size_t>(mask->first);
    const float logit = index < logits.size() ? logits[index] : kNever;
    std::fill(logits.begin(), logits.end(), kNever);
    if (index < logits.size()) logits[index] = logit;
    return;
  }
  // Tokens that end the sequence follow a rule of their own.
  const auto allowed = [&](int32_t token) {
    if (mask->complete) return true;
    return structure_->vocabulary().text(token).empty() && test_bit(mask->bits, token);
  };
  std::vector<std::pair<size_t, float>> ends;
  for (const int32_t token : ends_) {
    const auto index = static_cast<size_t>(token);
    if (token >= 0 && index < logits.size() && token < structure_->vocabulary().size())
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
