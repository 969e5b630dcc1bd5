#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/linear.h"
#include "formats/sparse_split.h"

namespace verbatim::bench {

// All that the kernel benchmark knows of how weights are stored.

/// The outputs and inputs of a matrix.
struct BenchShape {
  int64_t n = 0;
  int64_t k = 0;
};

/// A weight format and the ways to read it.
struct BenchFormat {
  std::string name;
  Format format = Format::kBf16;
  std::vector<Reading> readings;
  BlockShape shape = kBlockQ4;   ///< of `k-quants`
  SparseFractions sparse = {};   ///< of `squeeze3` and `squeeze4`
  bool outliers_gather = false;  ///< whether a hundredth of the columns has all outliers
};

/// Every format there is; `k-quants` once for each shape of blocks, as "k-quants-q4" and so on, and the
/// formats with a sparse part twice more: "squeeze4-dense" goes without it, and the outliers of
/// "squeeze4-gathered" are in a hundredth of the columns.
const std::vector<BenchFormat>& bench_formats();

/// Random weights in this format and no other: normally distributed with deviation 0.02, rounded to BF16, the
/// same on every call. Where outliers gather, 0.45 of the weights of every hundredth column are sixteen times
/// as large.
LinearWeight make_weight(BenchShape shape, const BenchFormat& format, ThreadTeam& team);

/// The same weights at another place.
LinearWeight clone(const LinearWeight& weight);

/// The bytes of the stored weights that this reading reads.
int64_t bytes_read(const LinearWeight& weight, Reading reading);

}  // namespace verbatim::bench
