#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/matrix.h"
#include "kv/cache.h"

namespace verbatim {

/// Memory for the keys and values of many sequences, in BF16. It is handed out in pages for 32, 64, 96 or 128
/// positions of all layers and heads: each whole chunk of a sequence takes a page of 128, and its last chunk
/// the smallest page that holds it. So 16 positions of a sequence are unused on average. A page may have
/// several owners. All members may be called from several threads.
class PagePool {
 public:
  /// The number of positions in a unit, the smallest page. It is kInnerStep because attention reads positions
  /// in steps of that many.
  static constexpr int64_t kUnit = kInnerStep;
  static constexpr int32_t kUnitsPerBlock = static_cast<int32_t>(kAttentionChunk / kUnit);

  /// A page: neighbouring units of one block. A block is the memory of one whole chunk.
  struct Page {
    int32_t block = -1;
    int32_t first = 0;
    int32_t units = 0;
    int64_t positions() const { return units * kUnit; }
  };

  /// Reserves memory for `positions` positions, rounded up to whole chunks. Physical memory is taken as it is
  /// first written. Throws Error(kMachine) if the reservation fails.
  PagePool(const CacheShape& shape, int64_t positions);

  /// Hands out a page of 1 to kUnitsPerBlock units, filled with zeros, with one owner. Returns nothing if no
  /// block has so many neighbouring free units.
  std::optional<Page> take(int32_t units);
  /// Adds an owner to a page.
  void share(const Page& page);
  /// Takes an owner from a page. The memory of a page without owners is free again.
  void give_back(const Page& page);
  int64_t owners(const Page& page) const;

  BFloat16* data(const Page& page) const {
    return data_.data() + (page.block * int64_t{kUnitsPerBlock} + page.first) * unit_elements();
  }
  const CacheShape& shape() const { return shape_; }
  /// The head dimension, padded to a multiple of kInnerStep.
  int64_t width() const { return width_; }
  int64_t total_units() const { return std::ssize(free_) * kUnitsPerBlock; }
  int64_t free_units() const;
  /// The number of units that were handed out at least once, which are those that take physical memory.
  int64_t written_units() const;
  int64_t unit_bytes() const { return unit_elements() * int64_t{sizeof(BFloat16)}; }

 private:
  int64_t unit_elements() const { return kUnit * shape_.layers * shape_.kv_heads * width_ * 2; }
  /// Enters a block into by_run_, by its longest run of free units.
  void file(int32_t block);
  /// Removes a block from by_run_.
  void unfile(int32_t block);

  CacheShape shape_;
  int64_t width_;
  Buffer<BFloat16> data_;
  mutable std::mutex mutex_;
  std::vector<uint8_t> free_;                                 // by block: a bit for each unit
  std::vector<std::array<int32_t, kUnitsPerBlock>> owners_;   // by unit: of the page that begins there
  std::vector<uint8_t> written_;                              // by block: units that were handed out before
  std::array<std::set<int32_t>, kUnitsPerBlock + 1> by_run_;  // blocks by their longest run
  int64_t free_units_ = 0;
};

}  // namespace verbatim
