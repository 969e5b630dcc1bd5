#pragma once

#include <memory>

#include "kv/cache.h"
#include "verbatim/cache.h"

namespace verbatim {

/// Throws Error(kBadInput), naming `where`, for options out of range.
void check_cache(const CacheOptions& options, const std::string& where);

/// An empty cache. Throws Error(kMachine) when the memory cannot be reserved, Error(kBadInput) for options
/// out of range or heads that are too large for the cache.
std::unique_ptr<KvCache> make_cache(const CacheOptions& options, const CacheShape& shape, int64_t capacity);

/// Bytes that a sequence of so many positions takes in such a cache, all layers.
int64_t cache_bytes(const CacheOptions& options, const CacheShape& shape, int64_t positions);

}  // namespace verbatim
