// Any bytes as the parts of a split GGUF file, cut where one begins: an Error, or tensors whose rows can be
// read and perhaps a whole model.

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/check_tensors.h"
#include "checkpoint/gguf_model.h"
#include "checkpoint/gguf_parts.h"
#include "verbatim/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    std::vector<verbatim::GgufPart> parts;
    for (size_t begin = 0; begin < size;) {
      const size_t end = std::min(text.find("GGUF", begin + 1), size);
      const auto bytes = std::as_bytes(std::span(data, size)).subspan(begin, end - begin);
      parts.push_back({verbatim::parse_gguf(bytes, "fuzz"), "fuzz"});
      begin = end;
    }
    if (parts.empty()) return 0;
    verbatim::gguf_part_count(parts.front().gguf, "fuzz");
    const verbatim::GgufFile gguf = verbatim::join_gguf_parts(std::move(parts));
    for (const auto& entry : gguf.tensors) {
      std::vector<float> row(static_cast<size_t>(entry.second.columns()));
      entry.second.read_row(entry.second.rows() - 1, row);
    }
    verbatim::check_tensors(verbatim::gguf_checkpoint(gguf, "fuzz"));
  } catch (const verbatim::Error&) {
  }
  return 0;
}
