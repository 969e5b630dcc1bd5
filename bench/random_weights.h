#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/linear.h"

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
  BlockShape shape = kBlockQ4;  ///< of `k-quants`
};

/// Every format there is; `k-quants` once for each shape of blocks, as "k-quants-q4" and so on.
const std::vector<BenchFormat>& bench_formats();

/// Random weights in this format and no other: normally distributed with deviation 0.02, rounded to BF16, the
/// same on every call.
LinearWeight make_weight(BenchShape shape, const BenchFormat& format, ThreadTeam& team);

/// The same weights at another place.
LinearWeight clone(const LinearWeight& weight);

/// The bytes of the stored weights that this reading reads.
int64_t bytes_read(const LinearWeight& weight, Reading reading);

}  // namespace verbatim::bench
