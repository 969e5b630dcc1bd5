#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "checkpoint/checkpoint.h"

namespace verbatim {

/// The description of a tensor that will be written.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
};

/// The header of a safetensors file, preceded by its length. The tensors' bytes follow it without gaps, which
/// the format forbids. The header is padded with spaces so that the first tensor begins at a multiple of 64
/// bytes. `metadata` are texts that the header holds besides. Throws Error(kUsage) for tensors that the
/// format cannot hold.
std::string safetensors_header(std::span<const TensorEntry> tensors,
                               const std::map<std::string, std::string>& metadata = {});

/// Writes a safetensors file as a stream, so that a file may be larger than the memory.
class SafetensorsWriter {
 public:
  /// Makes the file and writes its header. Throws Error(kMachine) when that fails.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorEntry> tensors);

  /// Writes the next bytes of the tensors, in the order of the header. A call may end in the middle of a
  /// tensor.
  void write(std::span<const std::byte> bytes);
  /// Writes everything to the disk. Throws Error(kUsage) unless the bytes of all tensors were written.
  void finish();

 private:
  OutputFile file_;
  uint64_t left_ = 0;  // the number of bytes of tensors that are not written yet
};

}  // namespace verbatim
