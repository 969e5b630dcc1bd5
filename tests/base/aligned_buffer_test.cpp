#include "base/aligned_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "verbatim/error.h"

namespace verbatim {
namespace {

TEST(AlignedBuffer, IsZeroAndAlignedToPages) {
  for (const size_t bytes : {size_t{1}, size_t{4097}, size_t{5} << 20}) {
    const AlignedBuffer buffer(bytes);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 4096, 0u);
    EXPECT_TRUE(
        std::all_of(buffer.data(), buffer.data() + bytes, [](std::byte b) { return b == std::byte{0}; }));
    std::fill_n(buffer.data(), bytes, std::byte{255});
  }
}

TEST(AlignedBuffer, MayBeEmpty) {
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
  EXPECT_EQ(AlignedBuffer(0).size(), 0u);
}

TEST(AlignedBuffer, MovesItsMemory) {
  AlignedBuffer first(100);
  std::byte* const address = first.data();
  AlignedBuffer second = std::move(first);
  EXPECT_EQ(second.data(), address);
  AlignedBuffer third(7);
  third = std::move(second);
  EXPECT_EQ(third.data(), address);
  EXPECT_EQ(third.size(), 100u);
}

TEST(AlignedBuffer, SaysWhenMemoryIsNotToBeHad) {
  try {
    const AlignedBuffer buffer(size_t{1} << 60);
    FAIL() << "2^60 bytes were given out";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMachine);
  }
}

TEST(Buffer, HoldsPlainElements) {
  const Buffer<float> buffer(1000);
  EXPECT_EQ(buffer.size(), 1000u);
  EXPECT_EQ(buffer[999], 0.0f);
  buffer[3] = 2.5f;
  EXPECT_EQ(buffer.span()[3], 2.5f);
  EXPECT_EQ(buffer.span().size(), 1000u);
}

TEST(Buffer, GrowsOnlyWhenItHasTo) {
  Buffer<int> buffer(10);
  buffer[0] = 5;
  const int* const address = buffer.data();
  buffer.reserve(10);
  EXPECT_EQ(buffer.data(), address);
  EXPECT_EQ(buffer[0], 5);
  buffer.reserve(10000);
  EXPECT_EQ(buffer.size(), 10000u);
  EXPECT_EQ(buffer[0], 0);
}

}  // namespace
}  // namespace verbatim
