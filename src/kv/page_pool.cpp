#include "kv/page_pool.h"

#include <bit>
#include <cstring>

namespace verbatim {

namespace {

/// A run of units in a block's mask.
struct Run {
  int32_t first = 0;
  int32_t units = 0;
};

constexpr uint8_t mask_of(int32_t first, int32_t units) {
  return static_cast<uint8_t>(((1 << units) - 1) << first);
}

Run longest_run(uint8_t free) {
  Run longest;
  for (int32_t first = 0; first < PagePool::kUnitsPerBlock; ++first) {
    int32_t units = 0;
    while (first + units < PagePool::kUnitsPerBlock && (free & mask_of(first + units, 1)) != 0) ++units;
    if (units > longest.units) longest = {first, units};
  }
  return longest;
}

constexpr uint8_t kAll = mask_of(0, PagePool::kUnitsPerBlock);

}  // namespace

PagePool::PagePool(const CacheShape& shape, int64_t positions)
    : shape_(shape), width_(round_up(shape.head_dim, kInnerStep)) {
  const auto blocks = static_cast<size_t>(ceil_div(positions, kAttentionChunk));
  data_ = Buffer<BFloat16>(blocks * static_cast<size_t>(kUnitsPerBlock * unit_elements()));
  free_.assign(blocks, kAll);
  written_.assign(blocks, 0);
  owners_.resize(blocks);
  free_units_ = total_units();
  for (size_t block = 0; block < blocks; ++block) file(static_cast<int32_t>(block));
}

void PagePool::file(int32_t block) {
  const int32_t units = longest_run(free_[static_cast<size_t>(block)]).units;
  by_run_[static_cast<size_t>(units)].insert(block);
}

void PagePool::unfile(int32_t block) {
  const int32_t units = longest_run(free_[static_cast<size_t>(block)]).units;
  by_run_[static_cast<size_t>(units)].erase(block);
}

std::optional<PagePool::Page> PagePool::take(int32_t units) {
  Page page;
  bool used_before = false;
  {
    const std::lock_guard lock(mutex_);
    auto run = static_cast<size_t>(units);
    while (run < by_run_.size() && by_run_[run].empty()) ++run;
    if (run == by_run_.size()) return std::nullopt;
    const int32_t block = *by_run_[run].begin();
    const auto at = static_cast<size_t>(block);
    page = {block, longest_run(free_[at]).first, units};
    const uint8_t mask = mask_of(page.first, units);
    unfile(block);
    free_[at] &= static_cast<uint8_t>(~mask);
    file(block);
    used_before = (written_[at] & mask) != 0;
    written_[at] |= mask;
    owners_[at][static_cast<size_t>(page.first)] = 1;
    free_units_ -= units;
  }
  // Attention multiplies values of positions that no row sees yet by zero, so they must be finite, and keys
  // of another sequence may have left infinities here.
  if (used_before) std::memset(data(page), 0, static_cast<size_t>(units * unit_bytes()));
  return page;
}

void PagePool::share(const Page& page) {
  const std::lock_guard lock(mutex_);
  ++owners_[static_cast<size_t>(page.block)][static_cast<size_t>(page.first)];
}

void PagePool::give_back(const Page& page) {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<size_t>(page.block);
  if (--owners_[at][static_cast<size_t>(page.first)] > 0) return;
  unfile(page.block);
  free_[at] |= mask_of(page.first, page.units);
  file(page.block);
  free_units_ += page.units;
}

int64_t PagePool::owners(const Page& page) const {
  const std::lock_guard lock(mutex_);
  return owners_[static_cast<size_t>(page.block)][static_cast<size_t>(page.first)];
}

int64_t PagePool::written_units() const {
  const std::lock_guard lock(mutex_);
  int64_t units = 0;
  for (const uint8_t mask : written_) units += std::popcount(mask);
  return units;
}

int64_t PagePool::free_units() const {
  const std::lock_guard lock(mutex_);
  return free_units_;
}

}  // namespace verbatim
