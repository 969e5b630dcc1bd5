#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "verbatim/inspect.h"

namespace verbatim::app {

/// Adds a section on the sparse parts of each format to `out`; with `each` it has a line for every matrix.
void add_sparse_sections(std::string& out, const std::vector<SparsePartReport>& parts, bool each);

/// The sparse parts by format, as JSON: sums, and the list of matrices.
nlohmann::ordered_json sparse_json(const std::vector<SparsePartReport>& parts);

}  // namespace verbatim::app
