#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kv/cache.h"

namespace verbatim {

/// The tokens of a text and their cache. Between steps the cache holds the verified keys and values of every
/// token but the last, which the next pass will evaluate.
struct Sequence {
  std::vector<int32_t> tokens;
  std::unique_ptr<KvCache> cache;
};

}  // namespace verbatim
