#include "serve/sampling_fields.h"

#include <charconv>
#include <limits>
#include <random>

namespace verbatim::serve {

namespace {

/// A seed that fits a double, as which some clients read numbers, and that the field `seed` takes again, as
/// does the seed of each further choice.
uint64_t random_seed() {
  std::random_device device;
  constexpr int kBits = 52;
  return ((uint64_t{device()} << 32) | device()) >> (64 - kBits);
}

std::vector<LogitBias> read_logit_bias(const Fields& fields, const Model& model) {
  const Json* const map = fields.find("logit_bias");
  std::vector<LogitBias> biases;
  if (map == nullptr) return biases;
  constexpr double kMost = 100;
  for (const auto& [key, value] : map->items()) {
    int32_t token = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (error != std::errc() || end != key.data() + key.size() || token < 0 || token >= model.vocab_size()) {
      fields.refuse("logit_bias",
                    fmt::format("has the key {}, which is no token from 0 to {}", shown(key, 40),
                                model.vocab_size() - 1),
                    "invalid_value");
    }
    if (!value.is_number() || !(std::abs(value.get<double>()) <= kMost)) {
      fields.refuse("logit_bias", fmt::format("must have a number from -100 to 100 for token {}", token),
                    "invalid_value");
    }
    const auto bias = value.get<float>();
    biases.push_back({token, bias == -kMost ? -std::numeric_limits<float>::infinity() : bias});
  }
  return biases;
}

}  // namespace

SamplingOptions read_sampling(const Fields& fields, const Model& model) {
  SamplingOptions sampling;
  const auto number = [&](const char* name, double absent) {
    return static_cast<float>(fields.number(name).value_or(absent));
  };
  sampling.logit_bias = read_logit_bias(fields, model);
  sampling.repetition_penalty = number("repetition_penalty", 1);
  sampling.presence_penalty = number("presence_penalty", 0);
  sampling.frequency_penalty = number("frequency_penalty", 0);
  sampling.temperature = number("temperature", 1);
  sampling.top_k = static_cast<int32_t>(std::max<int64_t>(0, fields.integer("top_k").value_or(0)));
  // The likeliest token is kept in any case.
  sampling.top_p = std::max(number("top_p", 1), std::numeric_limits<float>::min());
  sampling.min_p = number("min_p", 0);
  const std::optional<int64_t> seed = fields.integer("seed");
  sampling.seed = seed ? static_cast<uint64_t>(*seed) : random_seed();
  return sampling;
}

std::vector<std::string> read_stop(const Fields& fields, std::string_view name) {
  constexpr size_t kMost = 4;
  std::vector<std::string> stop = fields.texts(name);
  if (stop.size() > kMost) fields.refuse(name, "must be four strings at most", "invalid_value");
  if (std::find(stop.begin(), stop.end(), "") != stop.end()) {
    fields.refuse(name, "must not have an empty string", "invalid_value");
  }
  return stop;
}

}  // namespace verbatim::serve
