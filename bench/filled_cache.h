#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/thread_team.h"
#include "kv/make_cache.h"

namespace verbatim::bench {

/// A cache whose first `positions` positions hold random keys and values, as wide as those of models: what
/// its reading costs does not depend on what it holds. Has room for `more` positions after them. `progress`,
/// if there is one, hears the fraction that is done.
std::unique_ptr<KvCache> filled_cache(const CacheOptions& options, const CacheShape& shape, int64_t positions,
                                      int64_t more, ThreadTeam& team,
                                      const std::function<void(double)>& progress = {});

}  // namespace verbatim::bench
