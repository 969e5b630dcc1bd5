// Any bytes as a safetensors file: an Error or tensors whose rows can be read.

#include <algorithm>
#include <vector>

#include "checkpoint/safetensors.h"
#include "verbatim/error.h"

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
  } catch (const verbatim::Error&) {
  }
  return 0;
}
