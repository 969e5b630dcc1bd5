#include "kernels/generic/code_values.h"
#include "kernels/generic/table.h"
#include "kernels/isa_tables.h"
#include "kernels/scalar/vector.h"
#include "kernels/scalar/words.h"

namespace verbatim::scalar {

namespace {

using generic::kDoubledBsfp;
using generic::kDoubledE2m1;

struct Dot {
  struct Bytes {
    int8_t lane[64];
  };
  struct Sum {
    int32_t lane[16];
  };
  using Partial = Sum;
  static constexpr int32_t kE2m1Offset = 0;
  static constexpr int32_t kBsfpOffset = 0;
  static constexpr int32_t kInt8Offset = 0;

  static constexpr int kCodeStreams = 1;
  static constexpr int kCodeSums = 8;
  static constexpr bool kWholeBytes = false;

  static Sum start(int32_t value) {
    Sum sum;
    for (int32_t& lane : sum.lane) lane = value;
    return sum;
  }
  static const uint8_t* load(const uint8_t* codes) { return codes; }
  template <typename Value>
  static Bytes each(Value value) {
    Bytes bytes;
    for (int i = 0; i < 64; ++i) bytes.lane[i] = static_cast<int8_t>(value(i));
    return bytes;
  }
  static Bytes e2m1_low(const uint8_t* codes) {
    return each([&](int i) { return kDoubledE2m1[codes[i] & 15]; });
  }
  static Bytes e2m1_high(const uint8_t* codes) {
    return each([&](int i) { return kDoubledE2m1[codes[i] >> 4]; });
  }
  static Bytes bsfp_low(const uint8_t* codes) {
    return each([&](int i) { return kDoubledBsfp[codes[i] & 15]; });
  }
  static Bytes bsfp_high(const uint8_t* codes) {
    return each([&](int i) { return kDoubledBsfp[codes[i] >> 4]; });
  }
  static Bytes low_nibbles(const uint8_t* codes) {
    return each([&](int i) { return codes[i] & 15; });
  }
  static Bytes high_nibbles(const uint8_t* codes) {
    return each([&](int i) { return codes[i] >> 4; });
  }
  template <int kFrom, int kCount, int kTo>
  static Bytes bits(const uint8_t* packed) {
    return each([&](int i) { return (packed[i] >> kFrom & ((1 << kCount) - 1)) << kTo; });
  }
  static Bytes join(const Bytes& a, const Bytes& b) {
    return each([&](int i) { return a.lane[i] | b.lane[i]; });
  }
  static Sum signed_bytes(const uint8_t* from) {
    Sum sum;
    for (int i = 0; i < 16; ++i) sum.lane[i] = static_cast<int8_t>(from[i]);
    return sum;
  }
  static Sum unsigned_bytes(const uint8_t* from) {
    Sum sum;
    for (int i = 0; i < 16; ++i) sum.lane[i] = from[i];
    return sum;
  }
  template <int kMask>
  static Sum low_bits(Sum a) {
    for (int32_t& lane : a.lane) lane &= kMask;
    return a;
  }
  template <int kBits>
  static Sum shift_right(Sum a) {
    for (int32_t& lane : a.lane) lane >>= kBits;
    return a;
  }
  static Sum add_product(Sum sum, const Sum& a, const Sum& b) {
    for (int i = 0; i < 16; ++i) sum.lane[i] += a.lane[i] * b.lane[i];
    return sum;
  }
  static Bytes int8(const uint8_t* codes) {
    return each([&](int i) { return static_cast<int8_t>(codes[i]); });
  }
  static Partial open(const Sum& sum) { return sum; }
  static Sum close(const Sum&, const Partial& partial) { return partial; }
  static Partial add(Partial sum, const Bytes& weights, const int8_t* quad) {
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 4; ++j) sum.lane[i] += weights.lane[4 * i + j] * quad[j];
    }
    return sum;
  }
  static Partial add_int8(const Partial& sum, const Bytes& weights, const int8_t* quad) {
    return add(sum, weights, quad);
  }
  static Sum subtract_product(Sum sum, const uint8_t* zeros, int32_t value) {
    for (int i = 0; i < 16; ++i) sum.lane[i] -= zeros[i] * value;
    return sum;
  }
  template <int kBits>
  static Sum add_shifted(Sum sum, const Sum& shifted) {
    for (int i = 0; i < 16; ++i) sum.lane[i] += shifted.lane[i] * (1 << kBits);
    return sum;
  }
  static Sum add_shifted(Sum sum, const Sum& shifted, const uint8_t* shifts) {
    for (int i = 0; i < 16; ++i) sum.lane[i] += shifts[i] < 32 ? shifted.lane[i] * (1 << shifts[i]) : 0;
    return sum;
  }
  static void store(const Sum& sum, int32_t* out) { std::memcpy(out, sum.lane, sizeof sum.lane); }
  static F32x16 to_float(const Sum& sum) {
    F32x16 v;
    for (int i = 0; i < 16; ++i) v.lane[i] = static_cast<float>(sum.lane[i]);
    return v;
  }
};

}  // namespace

const KernelTable& table() {
  static const KernelTable kernels = generic::make_table<F32x16, U16x32, Dot>("scalar");
  return kernels;
}

}  // namespace verbatim::scalar
