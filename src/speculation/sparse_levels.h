#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kv/sparse.h"
#include "verbatim/recipe.h"

namespace verbatim {

/// Whether a level drafts from parts of the past alone.
bool is_sparse(const DraftLevel& level);

/// What is wrong with the sparse levels of a recipe, as a sentence without its subject; or empty. They read
/// keys and values as they are stored, so there must be no codes; and the planner does not know what they
/// cost.
std::string sparse_mistake(const Recipe& recipe);

/// What such a level sees of sequences that grow to `capacity` tokens, or null if the level is not sparse.
std::unique_ptr<SparseCache> make_view(const DraftLevel& level, const CacheOptions& cache,
                                       const CacheShape& shape, int64_t capacity);

/// How many positions of a prompt of so many tokens a level copies for itself.
int64_t copied_positions(const DraftLevel& level, int64_t prompt);

}  // namespace verbatim
