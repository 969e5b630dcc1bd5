#include "checkpoint/gguf_types.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace verbatim {

namespace {

/// The numbers of the types in GGUF files, in the order of DType.
constexpr std::array<uint32_t, kDTypeCount> kNumbers = {0,  1,  30, 2,  3,  6,  7,  8,  10, 11, 12,
                                                        13, 14, 16, 17, 22, 18, 21, 20, 23, 39};

struct OtherType {
  uint32_t number;
  const char* name;
};
/// The types that have a name and cannot be read.
constexpr OtherType kOthers[] = {{9, "Q8_1"},   {15, "Q8_K"},  {19, "IQ1_S"}, {24, "I8"},
                                 {25, "I16"},   {26, "I32"},   {27, "I64"},   {28, "F64"},
                                 {29, "IQ1_M"}, {34, "TQ1_0"}, {35, "TQ2_0"}};

}  // namespace

std::optional<DType> gguf_dtype(uint32_t number) {
  const auto found = std::find(kNumbers.begin(), kNumbers.end(), number);
  if (found == kNumbers.end()) return std::nullopt;
  return static_cast<DType>(found - kNumbers.begin());
}

uint32_t gguf_number(DType dtype) {
  return kNumbers[static_cast<size_t>(dtype)];
}

std::string gguf_type_name(uint32_t number) {
  if (const std::optional<DType> dtype = gguf_dtype(number)) return dtype_name(*dtype);
  for (const OtherType& other : kOthers) {
    if (other.number == number) return other.name;
  }
  return fmt::format("number {}", number);
}

std::string gguf_readable_types() {
  std::string names;
  for (int i = 0; i < kDTypeCount; ++i) {
    names += (i == 0 ? "" : ", ") + dtype_name(static_cast<DType>(i));
  }
  return names;
}

}  // namespace verbatim
