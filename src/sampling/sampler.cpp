#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "sampling/gumbel.h"
#include "sampling/logits.h"

namespace verbatim {

namespace {

void check(const SamplingOptions& options) {
  const auto refuse = [](const char* setting, auto value, const char* range) {
    fail(ErrorKind::kUsage, "{} is {}; it must be {}", setting, value, range);
  };
  for (const LogitBias& each : options.logit_bias) {
    if (each.token < 0) refuse("the token of a logit bias", each.token, "a token of the vocabulary");
    if (!(each.bias < std::numeric_limits<float>::infinity())) {
      refuse("a logit bias", each.bias, "a number or minus infinity");
    }
  }
  // Written so that NaN fails every test.
  if (!(options.repetition_penalty > 0.0f) || std::isinf(options.repetition_penalty)) {
    refuse("repetition penalty", options.repetition_penalty, "a number above 0 (1 is off)");
  }
  const auto check_penalty = [&](const char* setting, float penalty) {
    if (!std::isfinite(penalty)) refuse(setting, penalty, "a finite number (0 is off)");
  };
  check_penalty("presence penalty", options.presence_penalty);
  check_penalty("frequency penalty", options.frequency_penalty);
  if (!(options.temperature >= 0.0f) || std::isinf(options.temperature)) {
    refuse("temperature", options.temperature, "a number of at least 0 (0 takes the most likely token)");
  }
  if (options.top_k < 0) refuse("top-k", options.top_k, "at least 0 (0 is off)");
  if (!(options.top_p > 0.0f && options.top_p <= 1.0f)) {
    refuse("top-p", options.top_p, "above 0 and at most 1 (1 is off)");
  }
  if (!(options.min_p >= 0.0f && options.min_p <= 1.0f)) {
    refuse("min-p", options.min_p, "between 0 and 1 (0 is off)");
  }
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options, Constraint constraint)
    : options_(options), constraint_(std::move(constraint)) {
  check(options_);
}

std::span<const float> Sampler::constrained(std::span<const float> logits, std::span<const int32_t> history) {
  const bool structured = constraint_.structure != nullptr;
  if (options_.logit_bias.empty() && !constraint_.filter && !structured) return logits;
  constrained_.assign(logits.begin(), logits.end());
  for (const LogitBias& each : options_.logit_bias) {
    const auto index = static_cast<size_t>(each.token);
    // A draft's vocabulary may end before the token.
    if (index < constrained_.size()) constrained_[index] += each.bias;
  }
  if (constraint_.filter) {
    allowed_.assign(static_cast<size_t>(constraint_.vocabulary), 1);
    constraint_.filter(generated(history), allowed_);
    for (size_t i = 0; i < constrained_.size(); ++i) {
      if (i >= allowed_.size() || allowed_[i] == 0) constrained_[i] = -std::numeric_limits<float>::infinity();
    }
  }
  // The structure comes last: what it allows depends on whether the token that it prefers is forbidden.
  if (structured) constraint_.structure->apply(generated(history), constrained_);
  return constrained_;
}

ForcedTokens Sampler::forced(std::span<const int32_t> history, size_t most) {
  if (constraint_.structure == nullptr) return {};
  try {
    return constraint_.structure->forced(generated(history), most);
  } catch (const Error&) {
    return {};
  }
}

std::optional<std::span<const float>> Sampler::penalized_guess(std::span<const float> logits,
                                                               std::span<const int32_t> history) {
  try {
    return penalized(logits, history, Unknown::kIgnore);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::span<const float> Sampler::penalized(std::span<const float> logits, std::span<const int32_t> history,
                                          Unknown unknown) {
  logits = constrained(logits, history);
  const std::span<const int32_t> said = generated(history);
  const bool counted =
      (options_.presence_penalty != 0.0f || options_.frequency_penalty != 0.0f) && !said.empty();
  const bool repeated = options_.repetition_penalty != 1.0f && !history.empty();
  if (!counted && !repeated) return logits;
  penalized_.assign(logits.begin(), logits.end());
  for (const int32_t token : repeated ? history : std::span<const int32_t>()) {
    if (token < 0 || static_cast<size_t>(token) >= logits.size()) {
      if (unknown == Unknown::kIgnore) continue;
      fail(ErrorKind::kUsage, "token {} of the history lies outside the vocabulary of {} tokens", token,
           logits.size());
    }
    // From the original logit, so that a token that occurs twice is penalised once.
    const auto index = static_cast<size_t>(token);
    const float logit = logits[index];
    penalized_[index] =
        logit > 0.0f ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
  }
  if (counted) subtract_penalties(said);
  return penalized_;
}

/// Subtracts the presence and frequency penalties of the tokens that were generated. Tokens that the logits
/// have no place for are ignored.
void Sampler::subtract_penalties(std::span<const int32_t> generated) {
  occurrences_.resize(std::max(occurrences_.size(), penalized_.size()));
  const auto known = [this](int32_t token) {
    return token >= 0 && static_cast<size_t>(token) < penalized_.size();
  };
  for (const int32_t token : generated) {
    if (known(token)) ++occurrences_[static_cast<size_t>(token)];
  }
  for (const int32_t token : generated) {
    if (!known(token)) continue;
    int32_t& count = occurrences_[static_cast<size_t>(token)];
    if (count == 0) continue;  // subtracted already
    penalized_[static_cast<size_t>(token)] -=
        options_.presence_penalty + options_.frequency_penalty * static_cast<float>(count);
    count = 0;
  }
}

int32_t Sampler::sample(std::span<const float> logits, int64_t position, std::span<const int32_t> history) {
  const std::span<const float> given = logits;
  logits = penalized(given, history, Unknown::kFail);
  const float largest = largest_logit(logits);
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  if (largest == kNone && largest_logit(given) != kNone) {
    fail(ErrorKind::kUsage,
         "the structure, the token filter or the logit bias leaves no token for position {}", position);
  }
  if (largest == -std::numeric_limits<float>::infinity()) {
    bad_input(
        "the model gave no usable logit for position {}: all {} are NaN or minus infinity; check its weights",
        position, logits.size());
  }
  const int32_t likeliest = first_token_with(logits, largest);
  // No noise or filter matters beside an infinite logit.
  if (options_.temperature == 0.0f || std::isinf(largest)) return likeliest;
  const Cut cut = find_cut(logits, largest, options_, candidates_);
  return gumbel_argmax(logits, options_.temperature, {options_.seed, position}, cut, likeliest);
}

size_t Sampler::best_greedily(std::span<const float> logits, float largest, std::span<Guess> out) const {
  BestList<kMostGuesses> list;
  float threshold = -std::numeric_limits<float>::infinity();
  visit_at_least(logits, threshold, [&](size_t token) {
    if (!(logits[token] > threshold)) return;
    list.offer(logits[token], static_cast<int32_t>(token));
    threshold = static_cast<float>(list[out.size() - 1].score);
  });
  const size_t count = std::min(list.size(), out.size());
  const double total = softmax_total(logits, largest, 1.0f);
  for (size_t i = 0; i < count; ++i) {
    const float weight = softmax_weight(static_cast<float>(list[i].score) - largest);
    out[i] = {list[i].token, static_cast<float>(weight / total)};
  }
  return count;
}

size_t Sampler::best(std::span<const float> logits, int64_t position, std::span<const int32_t> history,
                     std::span<Guess> out) {
  out = out.first(std::min(out.size(), kMostGuesses));
  if (out.empty()) return 0;
  const auto penalized_logits = penalized_guess(logits, history);
  if (!penalized_logits) return 0;
  logits = *penalized_logits;
  const float largest = largest_logit(logits);
  if (largest == -std::numeric_limits<float>::infinity()) return 0;
  if (std::isinf(largest)) {
    out[0] = {first_token_with(logits, largest), 1.0f};
    return 1;
  }
  if (options_.temperature == 0.0f) return best_greedily(logits, largest, out);

  const Cut cut = find_cut(logits, largest, options_, candidates_);
  const auto list = gumbel_best(logits, options_.temperature, {options_.seed, position}, cut, blocks_);
  const size_t size = list.size();
  const auto weight = [&](size_t i) {
    return softmax_weight(static_cast<float>((list[i].score - list[0].score) * options_.temperature));
  };
  double total = 0.0;
  for (size_t i = 0; i < size; ++i) total += weight(i);
  const size_t count = std::min(size, out.size());
  for (size_t i = 0; i < count; ++i) out[i] = {list[i].token, static_cast<float>(weight(i) / total)};
  return count;
}

bool Sampler::distribution(std::span<const float> logits, std::span<const int32_t> history,
                           std::vector<float>& out) {
  out.assign(logits.size(), 0.0f);
  const auto penalized_logits = penalized_guess(logits, history);
  if (!penalized_logits) return false;
  logits = *penalized_logits;
  const float largest = largest_logit(logits);
  if (largest == -std::numeric_limits<float>::infinity()) return false;
  if (options_.temperature == 0.0f || std::isinf(largest)) {
    out[static_cast<size_t>(first_token_with(logits, largest))] = 1.0f;
    return true;
  }
  const Cut cut = find_cut(logits, largest, options_, candidates_);
  softmax_weights(logits, largest, options_.temperature, out);
  double total = 0.0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!cut.keeps(logits[i], static_cast<int32_t>(i))) out[i] = 0.0f;
    total += out[i];
  }
  const auto scale = static_cast<float>(1.0 / total);
  for (float& probability : out) probability *= scale;
  return true;
}

}  // namespace verbatim
