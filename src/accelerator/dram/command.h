#pragma once

#include <cstdint>

namespace verbatim::accelerator {

/// A command to a channel of a memory.
struct DramCommand {
  enum class Kind { kActivate, kRead, kWrite, kPrecharge, kPrechargeAll, kRefresh };
  int64_t cycle = 0;
  Kind kind = Kind::kActivate;
  int64_t bank = -1;  ///< group * banks_per_group + bank in the group; -1: all of them
  int64_t row = -1;   ///< of kActivate, kRead and kWrite

  bool operator==(const DramCommand&) const = default;
};

}  // namespace verbatim::accelerator
