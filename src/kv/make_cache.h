#pragma once

#include <memory>

#include "kv/cache.h"
#include "verbatim/cache.h"

namespace verbatim {

/// Checks options. Throws Error(kBadInput), naming `where`, if one is out of range.
void check_cache(const CacheOptions& options, const std::string& where);

/// Makes an empty cache of the kind that the options name. Throws Error(kMachine) if the memory cannot be
/// reserved, and Error(kBadInput) if an option is out of range or the heads are too large for that kind.
std::unique_ptr<KvCache> make_cache(const CacheOptions& options, const CacheShape& shape, int64_t capacity);

/// The bytes that a sequence of `positions` positions takes in a cache with these options, in all layers
/// together.
int64_t cache_bytes(const CacheOptions& options, const CacheShape& shape, int64_t positions);

}  // namespace verbatim
