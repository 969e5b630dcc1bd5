#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace verbatim::test {

/// The ranges of bytes that a product would ask for ahead: for each the place of its first byte and its size.
using FetchedRanges = std::vector<std::pair<int64_t, int64_t>>;

/// A stand-in for FetchAhead that notes what is asked for.
struct NotedFetches {
  FetchedRanges* ranges;
  void fetch_with(int64_t at, int64_t bytes) const { ranges->emplace_back(at, bytes); }
};

/// Expects the bytes 0 .. bytes - 1 in ascending order, each once.
inline void expect_each_byte_in_turn(const FetchedRanges& ranges, int64_t bytes) {
  int64_t end = 0;
  for (const auto& [at, size] : ranges) {
    ASSERT_EQ(at, end);
    end = at + size;
  }
  EXPECT_EQ(end, bytes);
}

}  // namespace verbatim::test
