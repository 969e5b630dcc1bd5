#include "checkpoint/gguf_codebooks.h"

#include <gtest/gtest.h>

#include <span>

#include "base/crc64.h"

namespace verbatim {
namespace {

/// Checks a codebook of `count` digits with `bits` bits each, all of them below `limit`.
void expect_codebook(std::span<const uint16_t> book, int count, int bits, uint32_t limit, bool even,
                     uint64_t crc) {
  for (size_t i = 0; i < book.size(); ++i) {
    if (i > 0) {
      EXPECT_LT(book[i - 1], book[i]);
    }
    uint32_t sum = 0;
    for (int j = 0; j < count; ++j) {
      const uint32_t digit = static_cast<uint32_t>(book[i]) >> bits * j & ((1u << bits) - 1);
      EXPECT_LT(digit, limit) << i;
      sum += digit;
    }
    EXPECT_EQ(static_cast<uint32_t>(book[i]) >> bits * (count - 1) >> bits, 0u);
    if (even) {
      EXPECT_EQ(sum % 2, 0u) << i;
    }
  }
  EXPECT_EQ(crc64(std::as_bytes(book)), crc) << std::hex << crc64(std::as_bytes(book));
}

TEST(GgufCodebooks, AscendAndKeepTheirParityAndTheirChecksums) {
  // PublicQuantizedGguf compares what every entry gives with another implementation; these checksums were
  // taken when it agreed.
  expect_codebook(kCodebookIQ2_XXS, 8, 2, 3, true, 0x54012e1147f81d6a);
  expect_codebook(kCodebookIQ2_XS, 8, 2, 3, true, 0xf2ce8a743c8e6709);
  expect_codebook(kCodebookIQ2_S, 8, 2, 3, true, 0xf904a0eaf275f346);
  expect_codebook(kCodebookIQ3_XXS, 4, 3, 8, true, 0x7f7081eac52a41ce);
  expect_codebook(kCodebookIQ3_S, 4, 3, 8, false, 0xb6b115e59ffd8057);
}

}  // namespace
}  // namespace verbatim
