#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "container/container.h"
#include "memory_estimate.h"

namespace verbatim::app {

/// What a packed file holds of the matrices in one format.
struct StoredFormatReport {
  Format format = Format::kBf16;
  int64_t matrices = 0;
  int64_t planes = 0;
  int64_t bytes = 0;    ///< all planes, without the padding between them
  int64_t weights = 0;  ///< as the model has them, unpadded

  double bits_per_weight() const;
};

/// What `inspect` says of a packed file beside what it says of any model.
struct PackedReport {
  Container container;
  std::vector<StoredFormatReport> formats;
  int64_t vector_bytes = 0;
  bool verified = false;  ///< every plane was compared with its checksum
};

PackedReport report_packed(Container container);

/// As the model's tensors would say: a tied output matrix does not count.
int64_t parameters_of(const ContainerHeader& header);

/// What running it takes.
MemoryEstimate estimate_memory(const Container& container);

}  // namespace verbatim::app
