#include "accelerator/function/stored_weight.h"

namespace verbatim::accelerator {

namespace {

struct Coded {
  uint8_t code;
  bool flag;
};

/// The code of each exponent: its upper three bits where no flag is set.
constexpr Coded kCoded[16] = {{1, true},  {1, true},  {1, false}, {1, false}, {3, true},  {3, true},
                              {3, false}, {3, false}, {4, false}, {0, true},  {5, false}, {2, true},
                              {6, false}, {6, false}, {7, false}, {7, false}};

}  // namespace

std::optional<StoredWeight> encode(uint16_t fp16) {
  const int exponent = fp16 >> 10 & 31;
  if (exponent > 15) return std::nullopt;
  const Coded coded = kCoded[exponent];
  return StoredWeight{.q = static_cast<uint8_t>(fp16 >> 15 << 3 | coded.code),
                      .r = static_cast<uint16_t>((coded.flag ? 1 << 11 : 0) | (fp16 & 0x7ff))};
}

uint8_t draft_exponent(uint8_t code) {
  // Bits from the most significant one.
  const int c0 = code >> 2 & 1;
  const int c1 = code >> 1 & 1;
  const int c2 = code & 1;
  const bool looked_up = (c0 | c2) == 0;  // NOR
  return static_cast<uint8_t>(looked_up ? 0b1001 | c1 << 1 : code << 1);
}

uint8_t full_exponent(uint8_t code, bool flag, bool lowest) {
  constexpr uint8_t kMux[4] = {0b100, 0b000, 0b101, 0b010};  // by c1 c2
  const uint8_t upper = flag ? kMux[code & 3] : code;
  return static_cast<uint8_t>(upper << 1 | (lowest ? 1 : 0));
}

uint16_t full_weight(const StoredWeight& stored) {
  const uint8_t exponent = full_exponent(stored.q & 7, (stored.r >> 11 & 1) != 0, (stored.r >> 10 & 1) != 0);
  return static_cast<uint16_t>((stored.q >> 3) << 14 | exponent << 10 | (stored.r & 0x3ff));
}

uint8_t draft_weight(const StoredWeight& stored) {
  return static_cast<uint8_t>((stored.q >> 3) << 4 | draft_exponent(stored.q & 7));
}

uint16_t as_fp16(uint16_t weight) {
  return static_cast<uint16_t>((weight & 0x4000) << 1 | (weight & 0x3fff));
}

}  // namespace verbatim::accelerator
