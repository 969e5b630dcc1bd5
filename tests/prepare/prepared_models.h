#pragma once

#include <cstdint>
#include <vector>

#include "support/synthetic_model.h"

namespace verbatim::test {

/// Models of different shapes: heads that share values and such that do not, biases, sizes that are no powers
/// of two, fewer inputs than outliers.
inline std::vector<TinyModelOptions> models() {
  return {{.hidden_size = 160, .intermediate_size = 352, .seed = 3},
          {.model_type = "qwen2",
           .hidden_size = 128,
           .intermediate_size = 256,
           .heads = 4,
           .kv_heads = 4,
           .seed = 4},
          {.hidden_size = 96, .intermediate_size = 112, .heads = 3, .kv_heads = 3, .tied = true, .seed = 5}};
}

/// A text of so many tokens of such a model.
inline std::vector<int32_t> some_tokens(int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>((i * i * 7 + i) % 250 + 1));
  return tokens;
}

}  // namespace verbatim::test
