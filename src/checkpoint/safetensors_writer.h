#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "checkpoint/checkpoint.h"

namespace verbatim {

/// A tensor that is to be written: all but its bytes.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
};

/// The header of a safetensors file, its length in front. The tensors' bytes follow it one after the other:
/// the format allows no holes. It is padded with spaces so that the first of them lies at a multiple of 64,
/// and with it all that have a multiple of 64 bytes. Throws Error(kUsage) for what the format cannot hold.
std::string safetensors_header(std::span<const TensorEntry> tensors);

/// Writes a safetensors file as a stream, so that a file may be larger than the memory.
class SafetensorsWriter {
 public:
  /// Makes the file and writes its header. Throws Error(kMachine) when that fails.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorEntry> tensors);

  /// The next bytes of the tensors, in the order of the header; calls need not end with a tensor.
  void write(std::span<const std::byte> bytes);
  /// Returns once everything is on the disk. Throws Error(kUsage) unless the bytes of all tensors were given.
  void finish();

 private:
  OutputFile file_;
  uint64_t left_ = 0;  // bytes that the header promises and that are still to come
};

}  // namespace verbatim
