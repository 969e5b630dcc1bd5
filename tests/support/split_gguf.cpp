#include "support/split_gguf.h"

#include <fmt/format.h>

#include <fstream>

#include "checkpoint/gguf_types.h"
#include "support/synthetic_model.h"

namespace verbatim::test {

namespace fs = std::filesystem;

namespace {

std::string text_bytes(const std::string& text) {
  return bytes_of<uint64_t>(text.size()) + text;
}

void pad(std::string& bytes) {
  bytes.resize((bytes.size() + 31) / 32 * 32, '\0');
}

}  // namespace

std::vector<SplitPart> split_parts(const GgufFile& gguf, size_t tensors_per_part, bool first_empty) {
  std::vector<SplitPart> parts(first_empty ? 2 : 1);
  for (const auto& entry : gguf.tensors) {
    if (parts.back().tensors.size() == tensors_per_part) parts.emplace_back();
    parts.back().tensors.push_back(entry.first);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].metadata = i == 0;
    parts[i].number = static_cast<uint16_t>(i);
    parts[i].count = static_cast<uint16_t>(parts.size());
    parts[i].all_tensors = static_cast<int32_t>(gguf.tensors.size());
  }
  return parts;
}

std::string part_bytes(const GgufFile& gguf, const SplitPart& part) {
  std::string bytes = "GGUF" + bytes_of(gguf.version) + bytes_of<uint64_t>(part.tensors.size()) +
                      bytes_of<uint64_t>(3 + (part.metadata ? gguf.metadata.size() : 0));
  if (part.metadata) {
    bytes.append(reinterpret_cast<const char*>(gguf.metadata_bytes.data()), gguf.metadata_bytes.size());
  }
  bytes += text_bytes("split.no") + bytes_of<uint32_t>(2) + bytes_of(part.number);
  bytes += text_bytes("split.count") + bytes_of<uint32_t>(2) + bytes_of(part.count);
  bytes += text_bytes("split.tensors.count") + bytes_of<uint32_t>(5) + bytes_of(part.all_tensors);
  std::string data;
  for (const std::string& name : part.tensors) {
    const TensorView& tensor = gguf.tensors.at(name);
    bytes += text_bytes(name) + bytes_of(static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) bytes += bytes_of(*size);
    bytes += bytes_of(gguf_number(tensor.dtype)) + bytes_of<uint64_t>(data.size());
    data.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
    pad(data);
  }
  pad(bytes);
  return bytes + data;
}

std::string part_name(size_t number, size_t count) {
  return fmt::format("model-{:05}-of-{:05}.gguf", number, count);
}

std::vector<fs::path> write_parts(const fs::path& file, const fs::path& folder, size_t tensors_per_part,
                                  bool first_empty) {
  const GgufFile gguf = open_gguf(file);
  const std::vector<SplitPart> parts = split_parts(gguf, tensors_per_part, first_empty);
  std::vector<fs::path> paths;
  for (const SplitPart& part : parts) {
    paths.push_back(folder / part_name(paths.size() + 1, parts.size()));
    std::ofstream(paths.back(), std::ios::binary) << part_bytes(gguf, part);
  }
  return paths;
}

}  // namespace verbatim::test
