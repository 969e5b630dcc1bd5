#pragma once

#include <filesystem>
#include <vector>

#include "container/container.h"
#include "verbatim/inspect.h"

namespace verbatim {

/// Describes the sparse parts of a packed file's matrices in `squeeze3` and `squeeze4`. `sensitivities` names
/// a file of sensitivities, or is empty. Throws Error(kBadInput) when a sparse part is malformed, or when the
/// sensitivities are malformed or another model's; Error(kUsage) when there are sensitivities but no sparse
/// part.
std::vector<SparsePartReport> report_sparse_parts(const Container& container,
                                                  const std::filesystem::path& sensitivities);

}  // namespace verbatim
