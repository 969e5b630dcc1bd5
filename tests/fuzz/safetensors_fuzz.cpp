// Any bytes as a safetensors file: an Error or tensors whose rows can be read, quantized matrices included.

#include <algorithm>
#include <vector>

#include "checkpoint/quantized_tensors.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/scaled_codes.h"
#include "verbatim/error.h"

namespace {

using verbatim::QuantizationConfig;
using Method = QuantizationConfig::Method;
using Strategy = QuantizationConfig::Strategy;

/// Ways to understand the tensors of a file as quantized matrices.
const QuantizationConfig kConfigs[] = {
    {.method = Method::kFp8, .strategy = Strategy::kBlock, .block_rows = 2, .block_columns = 3},
    {.method = Method::kFp8, .strategy = Strategy::kTensor},
    {.method = Method::kGptq, .strategy = Strategy::kGroup, .bits = 4, .group_size = 8, .zero_offset = 1},
    {.method = Method::kGptq, .strategy = Strategy::kGroup, .bits = 8, .symmetric = false, .reordered = true},
    {.method = Method::kAwq, .strategy = Strategy::kGroup, .bits = 4, .group_size = 32, .symmetric = false},
    {.method = Method::kPacked, .strategy = Strategy::kGroup, .bits = 4, .group_size = 4, .symmetric = false},
    {.method = Method::kPacked, .strategy = Strategy::kChannel, .bits = 8},
};

void read_joined(const verbatim::Checkpoint& stored, const QuantizationConfig& config) {
  try {
    verbatim::Checkpoint checkpoint = stored;
    join_quantized_tensors(checkpoint, config);
    for (const auto& entry : checkpoint.tensors) {
      const verbatim::TensorView& tensor = entry.second;
      if (tensor.scaled == nullptr) continue;
      const auto columns = static_cast<size_t>(tensor.columns());
      std::vector<float> row(columns);
      std::vector<int8_t> codes(columns);
      std::vector<verbatim::Float16> scales(columns / 32);
      for (const int64_t r : {int64_t{0}, tensor.rows() - 1}) {
        tensor.read_row(r, row);
        if (tensor.has_codes()) tensor.read_codes(r, codes, scales);
      }
    }
  } catch (const verbatim::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto tensors = verbatim::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
    for (const auto& entry : tensors) {
      const verbatim::TensorView& tensor = entry.second;
      std::vector<float> row(static_cast<size_t>(std::min<int64_t>(tensor.columns(), 1 << 20)));
      if (tensor.data.empty() || row.size() != static_cast<size_t>(tensor.columns())) continue;
      tensor.read_row(0, row);
      tensor.read_row(tensor.rows() - 1, row);
    }
    verbatim::Checkpoint checkpoint;
    checkpoint.path = "fuzz";
    checkpoint.tensors = tensors;
    for (const QuantizationConfig& config : kConfigs) read_joined(checkpoint, config);
  } catch (const verbatim::Error&) {
  }
  return 0;
}
