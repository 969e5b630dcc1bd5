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
/// positions of all layers and heads: a sequence's whole chunks take pages of 128, its last chunk the
/// smallest that holds it, so that on average 16 positions of a sequence are taken and not used. A page may
/// have several owners. All members may be called from several threads.
class PagePool {
 public:
  /// Positions of the smallest page: attention reads whole inner steps.
  static constexpr int64_t kUnit = kInnerStep;
  static constexpr int32_t kUnitsPerBlock = static_cast<int32_t>(kAttentionChunk / kUnit);

  /// Neighbouring units of a block, which holds one chunk.
  struct Page {
    int32_t block = -1;
    int32_t first = 0;
    int32_t units = 0;
    int64_t positions() const { return units * kUnit; }
  };

  /// Reserves memory for so many positions, in whole chunks; it is taken as it is first written. Throws
  /// Error(kMachine) when the reservation fails.
  PagePool(const CacheShape& shape, int64_t positions);

  /// A page of 1 to kUnitsPerBlock units with one owner, all zero; none when there is no such room.
  std::optional<Page> take(int32_t units);
  /// One more owner.
  void share(const Page& page);
  /// One owner less; without owners its memory is free again.
  void give_back(const Page& page);
  int64_t owners(const Page& page) const;

  BFloat16* data(const Page& page) const {
    return data_.data() + (page.block * int64_t{kUnitsPerBlock} + page.first) * unit_elements();
  }
  const CacheShape& shape() const { return shape_; }
  /// The head dimension padded to whole inner steps.
  int64_t width() const { return width_; }
  int64_t total_units() const { return std::ssize(free_) * kUnitsPerBlock; }
  int64_t free_units() const;
  /// Units that were handed out at least once: their memory is the process's.
  int64_t written_units() const;
  int64_t unit_bytes() const { return unit_elements() * int64_t{sizeof(BFloat16)}; }

 private:
  int64_t unit_elements() const { return kUnit * shape_.layers * shape_.kv_heads * width_ * 2; }
  /// Puts a block among those with as long a run of free units as it has.
  void file(int32_t block);
  void unfile(int32_t block);

  CacheShape shape_;
  int64_t width_;
  Buffer<BFloat16> data_;
  mutable std::mutex mutex_;
  std::vector<uint8_t> free_;                                 // by block: a bit for each unit
  std::vector<std::array<int32_t, kUnitsPerBlock>> owners_;   // of the page that begins at a unit
  std::vector<uint8_t> written_;                              // by block: units that were handed out before
  std::array<std::set<int32_t>, kUnitsPerBlock + 1> by_run_;  // blocks by their longest run
  int64_t free_units_ = 0;
};

}  // namespace verbatim
