#pragma once

#include <cstdint>

#include "container/container.h"
#include "verbatim/inspect.h"

namespace verbatim {

/// Describes a packed file that is open. Its planes are not compared with their checksums.
PackedReport report_packed(const Container& container);

/// The number of weights of a packed model, as its tensors would say: an output matrix that is the embedding
/// counts once.
int64_t parameters_of(const ContainerHeader& header);

/// The size of the planes of a store, without the padding between them.
int64_t bytes_of(const StoredFormat& store);

}  // namespace verbatim
