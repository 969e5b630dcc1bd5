#include "attention/coded_chunks.h"

#include "base/matrix.h"

namespace verbatim {

namespace {

const BFloat16* numbers(const uint8_t* from) {
  return reinterpret_cast<const BFloat16*>(from);
}

}  // namespace

int64_t CodedLayout::code_bytes() const {
  return kAttentionChunk * width / (storage == kCodesBytes ? 1 : 2);
}

int64_t CodedLayout::key_scales() const {
  return key_group == 0 ? kAttentionChunk : kAttentionChunk / key_group * width;
}

int64_t CodedLayout::value_scales() const {
  return value_group == 0 ? width : width / value_group * kAttentionChunk;
}

int64_t CodedLayout::record_bytes() const {
  const int64_t scales = 2 * (key_scales() + value_scales()) * int64_t{sizeof(BFloat16)};
  return 2 * code_bytes() + round_up<int64_t>(scales, 64);
}

CodedMatrix CodedLayout::keys(const uint8_t* record, const uint8_t* lower) const {
  const BFloat16* const scales = numbers(record + 2 * code_bytes());
  return {storage, record, lower, width, kAttentionChunk, key_group, scales, scales + key_scales()};
}

CodedMatrix CodedLayout::values(const uint8_t* record, const uint8_t* lower) const {
  const BFloat16* const scales = numbers(record + 2 * code_bytes()) + 2 * key_scales();
  return {storage,
          record + code_bytes(),
          lower == nullptr ? nullptr : lower + code_bytes(),
          kAttentionChunk,
          width,
          value_group,
          scales,
          scales + value_scales()};
}

}  // namespace verbatim
