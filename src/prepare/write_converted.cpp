#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/float16.h"
#include "base/memory_map.h"
#include "base/printable.h"
#include "prepare/converted_tensors.h"
#include "prepare/mxfp4_layout.h"

namespace verbatim {

namespace {

using Rows = ConvertedTensor::Rows;
using Part = ConvertedTensor::Part;
using Bytes = std::vector<std::byte>;
using Write = std::function<void(std::span<const std::byte>)>;

/// The row of the original that a row comes from.
int64_t source_row(const ConvertedTensor& tensor, int64_t row) {
  if (tensor.rows == Rows::kStay || tensor.rows == Rows::kTakeTurns) return row;
  if (tensor.rows == Rows::kEven) return 2 * row;
  if (tensor.rows == Rows::kOdd) return 2 * row + 1;
  const int64_t half = tensor.head_rows / 2;
  const int64_t head = row / tensor.head_rows * tensor.head_rows;
  const int64_t place = row - head;
  if (tensor.rows == Rows::kInterleave) return head + place / 2 + (place % 2 == 0 ? 0 : half);
  return head + (place < half ? 2 * place : 2 * (place - half) + 1);
}

/// Calls visit(source, row) for the rows of the originals in the order of the result.
template <typename Visit>
void for_each_row(const ConvertedTensor& tensor, Visit&& visit) {
  const size_t turns = tensor.rows == Rows::kTakeTurns ? 2 : 1;
  const bool half = tensor.rows == Rows::kEven || tensor.rows == Rows::kOdd;
  for (size_t first = 0; first < tensor.sources.size(); first += turns) {
    const int64_t rows = tensor.sources[first].rows() / (half ? 2 : 1);
    for (int64_t row = 0; row < rows; ++row) {
      for (size_t i = first; i < first + turns; ++i) visit(tensor.sources[i], source_row(tensor, row));
    }
  }
}

/// The part of `bytes`, the codes or the scales of a tensor, that belongs to a row.
std::span<const std::byte> bytes_of_row(std::span<const std::byte> bytes, const TensorView& tensor,
                                        int64_t row) {
  const size_t size = bytes.size() / static_cast<size_t>(tensor.rows());
  return bytes.subspan(static_cast<size_t>(row) * size, size);
}

/// The bytes of a matrix whose rows become its columns.
Bytes turned_bytes(std::span<const std::byte> bytes, int64_t rows, int64_t columns) {
  const auto height = static_cast<size_t>(rows);
  const auto width = static_cast<size_t>(columns);
  const size_t size = bytes.size() / (height * width);
  Bytes result(bytes.size());
  for (size_t row = 0; row < height; ++row) {
    for (size_t column = 0; column < width; ++column) {
      std::memcpy(result.data() + (column * height + row) * size,
                  bytes.data() + (row * width + column) * size, size);
    }
  }
  return result;
}

void append_value(DType dtype, float value, Bytes& out) {
  const auto append = [&out](auto number) {
    const size_t begin = out.size();
    out.resize(begin + sizeof(number));
    std::memcpy(out.data() + begin, &number, sizeof(number));
  };
  if (dtype == DType::kF32) return append(value);
  if (dtype == DType::kF16) return append(to_float16(value));
  append(to_bfloat16(value));
}

/// Adds 1 to a row, as packing adds it to the weights of such a folder, or takes 1 away. Throws where adding
/// it again would not give the same weights.
void add_exactly(const ConvertedTensor& tensor, std::span<float> row, const Checkpoint& checkpoint) {
  if (tensor.added == 0.0f) return;
  for (float& value : row) {
    const float sum = value + tensor.added;
    if (tensor.added < 0 && sum - tensor.added != value) {
      bad_input("{}: tensor {} would be stored less 1 in a folder, and loses bits by it",
                checkpoint.path.string(), printable(tensor.source_name));
    }
    value = sum;
  }
}

/// Refuses a scale of MXFP4 that the two layouts read as different numbers.
void require_scales(std::span<const std::byte> scales, const ConvertedTensor& tensor,
                    const Checkpoint& checkpoint) {
  if (std::ranges::find(scales, std::byte{255}) == scales.end()) return;
  bad_input("{}: tensor {} has a scale of 255, which is NaN in a folder and a power of two in a GGUF file",
            checkpoint.path.string(), printable(tensor.source_name));
}

bool is_mxfp4(const ConvertedTensor& tensor) {
  return tensor.part != Part::kAll || tensor.entry.dtype == DType::kMXFP4;
}

/// Appends a row of MXFP4, or its codes or scales, as the result has it.
void append_mxfp4(const Checkpoint& checkpoint, const ConvertedTensor& tensor, const TensorView& source,
                  int64_t row, Bytes& out) {
  const std::span<const std::byte> bytes = bytes_of_row(source.data, source, row);
  if (tensor.part == Part::kMxfp4Codes) return append_mxfp4_codes(bytes, out);
  if (tensor.part == Part::kMxfp4Scales) {
    const size_t begin = out.size();
    append_mxfp4_scales(bytes, out);
    return require_scales(std::span(out).subspan(begin), tensor, checkpoint);
  }
  const std::span<const std::byte> scales = bytes_of_row(source.scales, source, row);
  require_scales(scales, tensor, checkpoint);
  append_mxfp4_blocks(bytes, scales, out);
}

bool is_as_stored(const ConvertedTensor& tensor, const TensorView& source) {
  return tensor.entry.dtype == source.dtype && tensor.added == 0.0f;
}

/// Appends a row of numbers as the result has it, and counts those that it does not hold exactly.
void append_numbers(const Checkpoint& checkpoint, const ConvertedTensor& tensor, const TensorView& source,
                    int64_t row, Bytes& out, int64_t& rounded) {
  if (is_as_stored(tensor, source)) {
    const std::span<const std::byte> bytes = bytes_of_row(source.data, source, row);
    out.insert(out.end(), bytes.begin(), bytes.end());
    return;
  }
  std::vector<float> values(static_cast<size_t>(source.columns()));
  source.read_row(row, values);
  add_exactly(tensor, values, checkpoint);
  for (const float value : values) {
    if (!holds(tensor.entry.dtype, value)) ++rounded;
    append_value(tensor.entry.dtype, value, out);
  }
}

void write_tensor(const Checkpoint& checkpoint, const ConvertedTensor& tensor, const Write& write,
                  ConvertedModel& result) {
  if (!tensor.values.empty()) return write(std::as_bytes(std::span(tensor.values)));
  const TensorView& first = tensor.sources.front();
  if (first.transposed) return write(turned_bytes(first.data, first.columns(), first.rows()));
  const auto stays = [&tensor](const TensorView& source) { return is_as_stored(tensor, source); };
  const bool all_stay = std::ranges::all_of(tensor.sources, stays);
  if (all_stay && tensor.rows == Rows::kStay && !tensor.turned) {
    for (const TensorView& source : tensor.sources) write(source.data);
    return;
  }
  // Small tensors are in another type in GGUF, which holds them exactly unless they are in blocks.
  const bool counted = !all_stay && !is_mxfp4(tensor) && (!tensor.small || first.dtype > DType::kBF16);
  constexpr size_t kAtOnce = 1 << 20;
  Bytes bytes;
  int64_t rounded = 0;
  for_each_row(tensor, [&](const TensorView& source, int64_t row) {
    if (is_mxfp4(tensor)) {
      append_mxfp4(checkpoint, tensor, source, row, bytes);
    } else {
      append_numbers(checkpoint, tensor, source, row, bytes, rounded);
    }
    if (tensor.turned || bytes.size() < kAtOnce) return;
    write(bytes);
    bytes.clear();
  });
  if (tensor.turned) bytes = turned_bytes(bytes, first.rows(), first.columns());
  write(bytes);
  if (!counted) return;
  ++result.widened;
  result.rounded += rounded;
}

double source_bytes(const ConvertedTensor& tensor) {
  double bytes = 0;
  for (const TensorView& source : tensor.sources) bytes += static_cast<double>(source.data.size());
  return bytes;
}

}  // namespace

bool write_converted(const Checkpoint& checkpoint, std::span<const ConvertedTensor> tensors,
                     const Write& write, const ConvertModelOptions& options, ConvertedModel& result) {
  double total = 0;
  for (const ConvertedTensor& tensor : tensors) total += source_bytes(tensor);
  double done = 0;
  const auto count = [&result, &write](std::span<const std::byte> bytes) {
    result.bytes += std::ssize(bytes);
    write(bytes);
  };
  for (const ConvertedTensor& tensor : tensors) {
    if (options.cancelled && options.cancelled()) return false;
    write_tensor(checkpoint, tensor, count, result);
    for (const auto& file : checkpoint.files) file->release();
    done += source_bytes(tensor);
    if (options.progress) options.progress(done / total);
  }
  return !(options.cancelled && options.cancelled());
}

}  // namespace verbatim
