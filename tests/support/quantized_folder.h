#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/synthetic_model.h"

namespace verbatim::test {

// Tiny models in the layouts of quantized safetensors, packed and dequantized here in the plainest way, apart
// from the library's own code.

/// How the matrices of a model's layers are quantized.
struct Quantizing {
  std::string method;              ///< "fp8", "gptq", "awq", "float-quantized" or "pack-quantized"
  int bits = 8;                    ///< of gptq and pack-quantized
  int group_size = -1;             ///< of integers; -1: all inputs
  bool symmetric = true;           ///< of integers but awq
  bool reordered = false;          ///< inputs belong to groups in another order
  int version = 1;                 ///< 2: checkpoint_format gptq_v2
  std::string strategy = "block";  ///< of FP8: "block", "channel" or "tensor"
  int block_rows = 128;
  int block_columns = 128;
  std::string number = "F8_E4M3";  ///< of FP8
  std::string scale_type = "F16";  ///< "F32", "F16" or "BF16"
  bool powers_of_two = false;      ///< whether every scale is one
};

/// A tensor as a safetensors file has it.
struct StoredTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

/// What a folder of a quantized model holds, and the weights that it means.
struct QuantizedFolder {
  nlohmann::json quantization;
  std::map<std::string, StoredTensor> tensors;
  std::map<std::string, std::vector<float>> expected;  ///< of the quantized matrices, row after row
  TinyModelOptions options;

  void write(const std::filesystem::path& folder) const;
};

/// Random codes, scales and zero points for all matrices of the layers; the rest is in BF16.
QuantizedFolder quantized_folder(const Quantizing& quantizing, const TinyModelOptions& options = {});

/// The value of a number of eight bits by the definition of its type.
double float8_value(const std::string& type, uint8_t bits);

}  // namespace verbatim::test
