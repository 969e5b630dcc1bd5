#pragma once

#include <map>

#include "support/speculative_text.h"
#include "support/synthetic_model.h"

namespace verbatim::test {

/// A tiny model whose vocabulary has a token for every byte (from kFirstByte on) and little else.
inline TinyModelOptions byte_model_options(uint32_t seed = 1) {
  TinyModelOptions options;
  options.hidden_size = 64;
  options.intermediate_size = 96;
  options.heads = 2;
  options.kv_heads = 1;
  options.dtype = DType::kF32;
  options.byte_vocabulary = true;
  options.vocab_size = 260;
  options.seed = seed;
  return options;
}

/// A tiny model with random weights, and a copy of other weights that drafts for it. Their vocabulary has a
/// token for every byte (from kFirstByte on) and little else, so that tests may talk in text.
inline const Pair& byte_pair() {
  static const Pair pair = [] {
    measure_apart();
    const TemporaryFolder folder;
    const auto make = [&](const char* name, uint32_t seed) {
      write_tiny_gguf(folder.path() / name, byte_model_options(seed));
      return folder.path() / name;
    };
    return Pair{load_model(make("target.gguf", 1), {"full", "mxfp4", "int4"}),
                load_model(make("draft.gguf", 2), {"full", "mxfp4"})};
  }();
  return pair;
}

/// The token of byte 0 in byte_pair().
inline constexpr int32_t kFirstByte = 3;

/// Recipes of every kind of drafter and acceptance that run on byte_pair(), plain decoding first.
inline std::vector<Recipe> byte_recipes() {
  std::vector<Recipe> recipes = made_recipes(100);
  recipes.insert(recipes.begin(), load_recipe("plain"));
  Recipe planned = recipe_of("planned", {self_level("mxfp4-w4a8", 8, 2, 16), ngram_level(8, 2, 16)});
  planned.planned = true;
  recipes.push_back(std::move(planned));
  return recipes;
}

}  // namespace verbatim::test
