#include "checkpoint/gguf_writer.h"

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/gguf_types.h"
#include "checkpoint/layout.h"

namespace verbatim {

namespace {

constexpr uint64_t kDataAlignment = 32;

// The numbers of the types of metadata.
constexpr uint32_t kUint32Value = 4;
constexpr uint32_t kInt32Value = 5;
constexpr uint32_t kFloat32Value = 6;
constexpr uint32_t kBoolValue = 7;
constexpr uint32_t kStringValue = 8;
constexpr uint32_t kArrayValue = 9;

uint64_t padded(uint64_t bytes) {
  return (bytes + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
}

template <typename T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

void GgufMetadata::begin(std::string_view key, uint32_t type) {
  append_text(key);
  append(type);
  ++count_;
}

void GgufMetadata::append_text(std::string_view text) {
  append<uint64_t>(text.size());
  bytes_ += text;
}

template <typename T>
void GgufMetadata::append(T value) {
  append_number(bytes_, value);
}

void GgufMetadata::add(std::string_view key, std::string_view text) {
  begin(key, kStringValue);
  append_text(text);
}

void GgufMetadata::add(std::string_view key, int32_t number) {
  begin(key, kUint32Value);
  append(static_cast<uint32_t>(number));
}

void GgufMetadata::add(std::string_view key, float number) {
  begin(key, kFloat32Value);
  append(number);
}

void GgufMetadata::add(std::string_view key, bool value) {
  begin(key, kBoolValue);
  bytes_.push_back(value ? '\1' : '\0');
}

void GgufMetadata::add(std::string_view key, std::span<const std::string> texts) {
  begin(key, kArrayValue);
  append(kStringValue);
  append<uint64_t>(texts.size());
  for (const std::string& text : texts) append_text(text);
}

void GgufMetadata::add(std::string_view key, std::span<const float> numbers) {
  begin(key, kArrayValue);
  append(kFloat32Value);
  append<uint64_t>(numbers.size());
  for (const float number : numbers) append(number);
}

void GgufMetadata::add(std::string_view key, std::span<const int32_t> numbers) {
  begin(key, kArrayValue);
  append(kInt32Value);
  append<uint64_t>(numbers.size());
  for (const int32_t number : numbers) append(number);
}

GgufWriter::GgufWriter(const std::filesystem::path& target, const GgufMetadata& metadata,
                       std::span<const TensorEntry> tensors)
    : file_(target) {
  std::string head = "GGUF";
  append_number<uint32_t>(head, 3);
  append_number<uint64_t>(head, tensors.size());
  append_number<uint64_t>(head, metadata.count());
  head += metadata.bytes();
  uint64_t offset = 0;
  for (const TensorEntry& tensor : tensors) {
    const std::optional<uint64_t> bytes = stored_bytes(tensor.dtype, tensor.shape);
    if (!bytes || tensor.shape.empty() || tensor.shape.size() > 4) {
      fail(ErrorKind::kUsage, "GGUF cannot hold tensor {} with the shape {} as {}", printable(tensor.name),
           shape_text(tensor.shape), dtype_name(tensor.dtype));
    }
    append_number<uint64_t>(head, tensor.name.size());
    head += tensor.name;
    append_number(head, static_cast<uint32_t>(tensor.shape.size()));
    // The file puts the fastest dimension first.
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) append_number(head, *size);
    append_number(head, gguf_number(tensor.dtype));
    append_number(head, offset);
    offset += padded(*bytes);
    left_.push_back(*bytes);
  }
  file_.out().write(head);
  pad(head.size());
}

void GgufWriter::pad(uint64_t written) {
  file_.out().write(std::string(padded(written) - written, '\0'));
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (tensor_ == left_.size() || bytes.size() > left_[tensor_]) {
    fail(ErrorKind::kUsage, "more bytes were given than the tensor has");
  }
  file_.out().write(bytes);
  left_[tensor_] -= bytes.size();
  written_ += bytes.size();
  if (left_[tensor_] > 0) return;
  pad(written_);
  written_ = 0;
  ++tensor_;
}

void GgufWriter::keep() {
  if (tensor_ != left_.size()) fail(ErrorKind::kUsage, "tensors were not given whole");
  file_.keep();
}

}  // namespace verbatim
