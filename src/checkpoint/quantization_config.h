#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace verbatim {

/// What the quantization_config of a config.json says of the weights.
struct QuantizationConfig {
  enum class Method : uint8_t {
    kFp8,     ///< F8_E4M3 or F8_E5M2 and scales
    kGptq,    ///< codes of 4 or 8 bits, packed along the inputs
    kAwq,     ///< codes of 4 bits, packed along the outputs
    kPacked,  ///< pack-quantized of compressed-tensors
  };
  /// What shares a scale in kFp8 and kPacked.
  enum class Strategy : uint8_t { kTensor, kChannel, kGroup, kBlock };

  Method method = Method::kFp8;
  Strategy strategy = Strategy::kTensor;
  int bits = 8;
  int64_t group_size = 0;  ///< of groups; 0: all inputs of an output
  int64_t block_rows = 0;  ///< of blocks
  int64_t block_columns = 0;
  bool symmetric = true;
  bool reordered = false;  ///< whether a tensor says which group an input belongs to
  int zero_offset = 0;     ///< what is added to stored zero points, modulo the number of codes
  /// The modules that are not quantized. Patterns ("re:...") among them are not evaluated.
  std::vector<std::string> unquantized;
};

/// Reads a quantization_config. `where` is the name of the file in errors. Throws Error(kBadInput), naming
/// the key, for methods, layouts and keys that are not supported.
QuantizationConfig parse_quantization_config(const nlohmann::json& value, const std::string& where);

}  // namespace verbatim
