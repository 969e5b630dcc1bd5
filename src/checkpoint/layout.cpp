#include "checkpoint/layout.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/gguf_blocks.h"

namespace verbatim {

std::optional<uint64_t> stored_bytes(DType dtype, std::span<const int64_t> shape) {
  uint64_t elements = 1;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements)) return std::nullopt;
  }
  // Far above any file, and low enough that no product with an element's size overflows.
  if (elements > (uint64_t{1} << 56)) return std::nullopt;
  if (const BlockType* const block = block_type(dtype)) {
    const auto whole = static_cast<int64_t>(block->elements);
    if (shape.empty() || shape.back() % whole != 0) return std::nullopt;
  }
  return dtype_bytes(dtype, elements);
}

void check_no_overlap(std::vector<Extent> extents, const std::string& where) {
  std::erase_if(extents, [](const Extent& extent) { return extent.begin == extent.end; });
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) {
      bad_input("{}: {} and {} overlap; the file is damaged", where, printable(extents[i - 1].tensor),
                printable(extents[i].tensor));
    }
  }
}

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace verbatim
