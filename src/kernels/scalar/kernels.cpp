#include <bit>

#include "kernels/generic/table.h"
#include "kernels/isa_tables.h"
#include "kernels/scalar/vector.h"

namespace verbatim::scalar {

namespace {

/// Twice the values of E2M1, by code.
constexpr int8_t kDoubledE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
/// The values of E2M1 in BF16, by code.
constexpr uint16_t kBf16E2m1[16] = {0x0000, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0,
                                    0x8000, 0xbf00, 0xbf80, 0xbfc0, 0xc000, 0xc040, 0xc080, 0xc0c0};

struct Dot {
  struct Bytes {
    int8_t lane[64];
  };
  struct Sum {
    int32_t lane[16];
  };
  static constexpr int32_t kOffset = 0;

  static Sum zero() { return {}; }
  static const uint8_t* load(const uint8_t* codes) { return codes; }
  static Bytes low(const uint8_t* codes) {
    Bytes bytes;
    for (int i = 0; i < 64; ++i) bytes.lane[i] = kDoubledE2m1[codes[i] & 15];
    return bytes;
  }
  static Bytes high(const uint8_t* codes) {
    Bytes bytes;
    for (int i = 0; i < 64; ++i) bytes.lane[i] = kDoubledE2m1[codes[i] >> 4];
    return bytes;
  }
  static Sum add(Sum sum, const Bytes& weights, const int8_t* quad) {
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 4; ++j) sum.lane[i] += weights.lane[4 * i + j] * quad[j];
    }
    return sum;
  }
  static Sum subtract(const Sum& sum, int32_t) { return sum; }
  static F32x16 to_float(const Sum& sum) {
    F32x16 v;
    for (int i = 0; i < 16; ++i) v.lane[i] = static_cast<float>(sum.lane[i]);
    return v;
  }
};

/// The weight of one code under a scale exponent: exact, because the scale is a power of two and
/// formats/mxfp4.h keeps it in the range where no product leaves BF16's normal numbers.
uint16_t scaled(uint8_t code, uint8_t exponent) {
  const uint16_t value = kBf16E2m1[code];
  if ((code & 7) == 0) return value;
  return static_cast<uint16_t>(value + ((exponent - 127) << 7));
}

void unpack_mxfp4(const uint8_t* codes, const uint8_t* scales, int64_t group_count, BFloat16* out) {
  for (int64_t g = 0; g < group_count; ++g) {
    for (int block = 0; block < 4; ++block) {
      for (int column = 0; column < 16; ++column) {
        const uint8_t* const quad = codes + (g * 4 + block) * 64 + column * 4;
        const uint8_t exponent = scales[g * 16 + column];
        BFloat16* const pairs = out + (g * 16 + block * 4) * 32 + column * 2;
        for (int i = 0; i < 4; ++i) {
          pairs[i / 2 * 32 + i % 2].bits = scaled(quad[i] & 15, exponent);
          pairs[(2 + i / 2) * 32 + i % 2].bits = scaled(quad[i] >> 4, exponent);
        }
      }
    }
  }
}

}  // namespace

const KernelTable& table() {
  static const KernelTable kernels = generic::make_table<F32x16, Dot>("scalar", unpack_mxfp4);
  return kernels;
}

}  // namespace verbatim::scalar
