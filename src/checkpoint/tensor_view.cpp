#include <cstring>

#include "base/error.h"
#include "base/float16.h"
#include "checkpoint/checkpoint.h"

namespace verbatim {

namespace {

constexpr size_t kBlock = 32;  // elements in a block of Q8_0
constexpr size_t kBlockBytes = 2 + kBlock;

/// Tensors of safetensors files lie at any address, so elements are copied out.
template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void convert_row(const std::byte* from, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = to_float(load<T>(from + i * sizeof(T)));
}

/// Exact: an F16 scale times an int8 has at most 19 significant bits.
void convert_q8_0_row(const std::byte* from, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const std::byte* block = from + i / kBlock * kBlockBytes;
    const float scale = to_float(load<Float16>(block));
    out[i] = scale * static_cast<float>(load<int8_t>(block + 2 + i % kBlock));
  }
}

}  // namespace

std::string dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kQ8_0:
      return "Q8_0";
  }
  return "unknown";
}

size_t dtype_bytes(DType dtype, size_t elements) {
  switch (dtype) {
    case DType::kF32:
      return elements * 4;
    case DType::kF16:
    case DType::kBF16:
      return elements * 2;
    case DType::kQ8_0:
      return elements / kBlock * kBlockBytes;
  }
  return 0;
}

int64_t TensorView::rows() const {
  int64_t count = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) count *= shape[i];
  return count;
}

void TensorView::read_row(int64_t r, std::span<float> out) const {
  const size_t bytes = dtype_bytes(dtype, static_cast<size_t>(columns()));
  if (r < 0 || r >= rows() || out.size() != static_cast<size_t>(columns())) {
    fail(ErrorKind::kUsage, "a row {} of {} elements was asked of a tensor of {} rows of {}", r, out.size(),
         rows(), columns());
  }
  if (out.empty()) return;
  const std::byte* from = data.data() + static_cast<size_t>(r) * bytes;
  switch (dtype) {
    case DType::kF32:
      std::memcpy(out.data(), from, bytes);
      break;
    case DType::kF16:
      convert_row<Float16>(from, out);
      break;
    case DType::kBF16:
      convert_row<BFloat16>(from, out);
      break;
    case DType::kQ8_0:
      convert_q8_0_row(from, out);
      break;
  }
}

}  // namespace verbatim
