#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/synthetic_model.h"

namespace verbatim::test {

// What sets the tiny models of the families with LayerNorms apart: GPT-2, StarCoder 2 and OPT.

/// Whether a model_type is of such a family.
bool has_layer_norms(const std::string& model_type);

/// The config.json of such a model.
nlohmann::json layer_norm_config(const TinyModelOptions& options);

/// A tensor of such a model.
struct LayerNormTensor {
  enum Kind {
    kMatrix,          ///< a row for each output
    kMatrixOfInputs,  ///< a row for each input, as a GPT-2 has its matrices in safetensors
    kNorm,
    kBias
  };
  Kind kind;
  std::string name;
  std::vector<int64_t> shape;
};
std::vector<LayerNormTensor> layer_norm_tensors(const TinyModelOptions& options);

/// A tensor with its rows and columns exchanged, if it has a row for each input.
NamedTensor with_rows_of_outputs(const NamedTensor& tensor);

/// The GGUF name of a tensor of a GPT-2 or a StarCoder 2.
std::string layer_norm_gguf_name(std::string name);

}  // namespace verbatim::test
