#pragma once

#include <array>
#include <cstdint>

#include "base/thread_team.h"

namespace verbatim {

/// The times of products with the two stores of BF16 weights that verify, on this machine: `bf16`, which a
/// copy in `mxfp4` drafts for, and `mxbf16`, which holds the draft in itself and has to be unpacked.
struct StoreCosts {
  /// The numbers of rows that are measured: one sequence, a draft of one sequence, and batches.
  static constexpr std::array<int64_t, 5> kRows = {1, 4, 8, 16, 32};

  std::array<double, kRows.size()> bf16{};    ///< seconds of a product, by the numbers of rows in kRows
  std::array<double, kRows.size()> nested{};  ///< the same of `mxbf16`
};

/// Whether the nested store serves as well as weights in BF16 with a copy to draft from: whether no product
/// takes more than a tenth longer with it, whatever the number of rows.
bool nested_keeps_up(const StoreCosts& costs);

/// Measures products of one matrix of random weights in both stores, in turns, for up to a second.
StoreCosts measure_store_costs(ThreadTeam& team);

/// The costs that are kept in the cache folder (cache_folder()) for this machine, its path and so many
/// threads; if there are none, measures and keeps them.
StoreCosts store_costs(ThreadTeam& team);

}  // namespace verbatim
