#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/gguf.h"

namespace verbatim::test {

/// What a part of a split GGUF file holds and says; it may lie.
struct SplitPart {
  std::vector<std::string> tensors;
  bool metadata = false;  ///< whether it has the metadata of the whole file, as first parts have
  uint16_t number = 0;    ///< from 0
  uint16_t count = 1;
  int32_t all_tensors = 0;  ///< of the whole model
};

/// The parts of a GGUF file with so many tensors in each, in the order of their names. `first_empty` leaves
/// the first part without tensors.
std::vector<SplitPart> split_parts(const GgufFile& gguf, size_t tensors_per_part, bool first_empty = false);

/// The bytes of a part.
std::string part_bytes(const GgufFile& gguf, const SplitPart& part);

/// The name of a part of a model called `model`.
std::string part_name(size_t number, size_t count);

/// Writes the parts of a GGUF file into a folder and returns their paths.
std::vector<std::filesystem::path> write_parts(const std::filesystem::path& file,
                                               const std::filesystem::path& folder, size_t tensors_per_part,
                                               bool first_empty = false);

}  // namespace verbatim::test
