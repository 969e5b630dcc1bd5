#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace verbatim::generic {

/// Fetches into the second-level cache what will be wanted a window of 64 KB after `from`, and `kBytes` bytes
/// of it; `from` is a multiple of that. For memory that is read from one end to the other: a core that asks
/// for one line after the other waits most of the time, because a hardware prefetcher does not cross a page.
/// So the window ahead is fetched in eight streams of 8 KB, four lines of each in turn: what is fetched is
/// not `from` one window on, but as each place of a window has its own, all of it is fetched in the end.
template <int kBytes>
VERBATIM_INLINE void prefetch_scattered(const void* from) {
  constexpr uintptr_t kRun = 256;
  constexpr uintptr_t kStreams = 8;
  constexpr uintptr_t kWindow = 65536;
  static_assert(kBytes % 64 == 0 && (kBytes <= 256 || kBytes % 256 == 0));
  for (int at = 0; at < kBytes; at += static_cast<int>(kRun)) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(at);
    const uintptr_t stream = address / kRun % kStreams;
    const uintptr_t run = address % kWindow / (kRun * kStreams);
    const uintptr_t start = address - address % kWindow + kWindow;
    const uintptr_t target = start + stream * (kWindow / kStreams) + run * kRun + address % kRun;
    for (uintptr_t line = 0; line < kRun && line < static_cast<uintptr_t>(kBytes); line += 64) {
      __builtin_prefetch(reinterpret_cast<const void*>(target + line), 0, 2);
    }
  }
}

}  // namespace verbatim::generic
