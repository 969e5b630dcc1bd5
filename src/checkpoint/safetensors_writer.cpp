#include "checkpoint/safetensors_writer.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/gguf_blocks.h"
#include "checkpoint/layout.h"

namespace verbatim {

namespace {

constexpr size_t kAlignment = 64;

uint64_t bytes_of(const TensorEntry& tensor) {
  const std::optional<uint64_t> bytes = stored_bytes(tensor.dtype, tensor.shape);
  if (!bytes || block_type(tensor.dtype) != nullptr) {
    fail(ErrorKind::kUsage, "safetensors cannot hold tensor {} with the shape {} as {}",
         printable(tensor.name), shape_text(tensor.shape), dtype_name(tensor.dtype));
  }
  return *bytes;
}

}  // namespace

std::string safetensors_header(std::span<const TensorEntry> tensors,
                               const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json entries;
  entries["__metadata__"] = {{"format", "pt"}};  // Transformers wants to be told
  for (const auto& [name, text] : metadata) entries["__metadata__"][name] = text;
  uint64_t offset = 0;
  for (const TensorEntry& tensor : tensors) {
    const uint64_t end = offset + bytes_of(tensor);
    entries[tensor.name] = {
        {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = entries.dump();
  const size_t total = sizeof(uint64_t) + text.size();
  text.append((kAlignment - total % kAlignment) % kAlignment, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorEntry> tensors)
    : file_(path) {
  file_.write(safetensors_header(tensors));
  for (const TensorEntry& tensor : tensors) left_ += bytes_of(tensor);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > left_) fail(ErrorKind::kUsage, "more bytes were given than the tensors have");
  file_.write(bytes);
  left_ -= bytes.size();
}

void SafetensorsWriter::finish() {
  if (left_ != 0) fail(ErrorKind::kUsage, "{} bytes of the tensors were not given", left_);
  file_.finish();
}

}  // namespace verbatim
