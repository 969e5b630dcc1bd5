// Any bytes as a GGUF file: an Error, or tensors whose rows can be read and perhaps a whole model.

#include <vector>

#include "checkpoint/check_tensors.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_model.h"
#include "verbatim/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const verbatim::GgufFile gguf = verbatim::parse_gguf(std::as_bytes(std::span(data, size)), "fuzz");
    for (const auto& entry : gguf.tensors) {
      const verbatim::TensorView& tensor = entry.second;
      std::vector<float> row(static_cast<size_t>(tensor.columns()));
      tensor.read_row(0, row);
      tensor.read_row(tensor.rows() - 1, row);
    }
    verbatim::check_tensors(verbatim::gguf_checkpoint(gguf, "fuzz"));
  } catch (const verbatim::Error&) {
  }
  return 0;
}
