#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kv/sparse.h"
#include "verbatim/recipe.h"

namespace verbatim {

/// Whether a level is sparse: whether its drafts see parts of the past alone (`window`, `snapkv`).
bool is_sparse(const DraftLevel& level);

/// The mistake in the sparse levels of a recipe, as a sentence without its subject; empty if there is none.
/// Sparse levels read keys and values as numbers, so the cache must not store codes; and the planner does not
/// know their costs.
std::string sparse_mistake(const Recipe& recipe);

/// Makes the view through which a sparse level sees sequences that grow to `capacity` tokens. Returns null if
/// the level is not sparse.
std::unique_ptr<SparseCache> make_view(const DraftLevel& level, const CacheOptions& cache,
                                       const CacheShape& shape, int64_t capacity);

/// The number of positions that a level copies for its own use, of a prompt of `prompt` tokens.
int64_t copied_positions(const DraftLevel& level, int64_t prompt);

}  // namespace verbatim
