#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// The bytes of a tensor of a type and shape. Nothing if a size is negative, the count overflows, or a row of
/// a block format is not a whole number of blocks.
std::optional<uint64_t> stored_bytes(DType dtype, std::span<const int64_t> shape);

/// The place of a tensor in the data of a file: bytes begin .. end - 1.
struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string tensor;
};

/// Checks extents. Throws Error(kBadInput), naming `where` and both tensors, if two of them share bytes.
void check_no_overlap(std::vector<Extent> extents, const std::string& where);

/// A shape as text: "[512, 64]".
std::string shape_text(std::span<const int64_t> shape);

}  // namespace verbatim
