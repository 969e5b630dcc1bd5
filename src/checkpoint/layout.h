#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// The bytes of a tensor of that shape, or nothing when a size is negative, the count overflows, or the row
/// of a block format is not a whole number of blocks.
std::optional<uint64_t> stored_bytes(DType dtype, std::span<const int64_t> shape);

/// Where a tensor lies in the data of a file: bytes begin .. end - 1.
struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string tensor;
};

/// Throws Error(kBadInput), naming `where` and both tensors, when two extents share bytes.
void check_no_overlap(std::vector<Extent> extents, const std::string& where);

/// "[512, 64]".
std::string shape_text(std::span<const int64_t> shape);

}  // namespace verbatim
