#include "kernels/amx/products.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512/vnni_dot.h"
#include "kernels/generic/blocks.h"

namespace verbatim::amx {

namespace {

using avx512::F32x16;

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileSums = kTileRows * kPanelWidth;
/// The inputs of a step: as many as a tile of bytes has.
constexpr int64_t kStepInputs = 64;
constexpr int kSteps = static_cast<int>(kBlockInputs / kStepInputs);
/// The row tiles that are multiplied with a block once it is unpacked.
constexpr int64_t kRowTiles = 16;

/// A block with the scales of its groups multiplied into the weights: scale · (code - bias) is 128 · upper +
/// lower, where lower is from 0 to 127. So all of a block's products are sums of one, in integers.
struct alignas(4096) ScaledBlock {
  int8_t upper[kSteps][1024];
  int8_t lower[kSteps][1024];
  float offsets[16][kPanelWidth];
};

template <BlockShape kShape>
struct Unpack {
  using Dot = avx512::VnniDot;
  using Micro = generic::BlockMicro<F32x16, Dot, kShape, 1>;
  static constexpr BlockLayout kLayout = block_layout(kShape);

  /// The weights of a quad, of which bytes 0 and 2 and bytes 1 and 3 of each column are multiplied as words.
  VERBATIM_INLINE static void quad(__m512i codes, __m512i scales, int8_t* upper, int8_t* lower) {
    const __m512i bias = _mm512_set1_epi16(kLayout.bias);
    const __m512i bytes = _mm512_set1_epi16(255);
    const __m512i seven = _mm512_set1_epi16(127);
    const __m512i even = _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_and_si512(codes, bytes), bias), scales);
    const __m512i odd = _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_srli_epi16(codes, 8), bias), scales);
    const __m512i low =
        _mm512_or_si512(_mm512_and_si512(even, seven), _mm512_slli_epi16(_mm512_and_si512(odd, seven), 8));
    const __m512i high = _mm512_or_si512(_mm512_and_si512(_mm512_srai_epi16(even, 7), bytes),
                                         _mm512_slli_epi16(_mm512_srai_epi16(odd, 7), 8));
    _mm512_store_si512(upper, high);
    _mm512_store_si512(lower, low);
  }

  /// The scales of a group, each in both words of its column.
  VERBATIM_INLINE static __m512i scales(const uint8_t* block, int group) {
    const uint8_t* const from = block + kLayout.scales_at() + group * kPanelWidth;
    const __m512i wide = kLayout.offsets ? Dot::unsigned_bytes(from) : Dot::signed_bytes(from);
    return _mm512_or_si512(_mm512_and_si512(wide, _mm512_set1_epi32(0xffff)), _mm512_slli_epi32(wide, 16));
  }

  static void block(const uint8_t* block, ScaledBlock& out) {
    constexpr int kGroups = kLayout.groups();
    for (int64_t line = 0; line < kLayout.bytes(); line += 64) {
      __builtin_prefetch(block + kLayout.bytes() + line);
    }
    for (int t = 0; t < static_cast<int>(kBlockInputs / kInnerStep); ++t) {
      const uint8_t* const tile = block + kLayout.tiles_at() + t * kLayout.tile_bytes();
      int8_t* const upper = out.upper[t / 2] + t % 2 * 512;
      int8_t* const lower = out.lower[t / 2] + t % 2 * 512;
      constexpr int kOfTile = kInnerStep / kLayout.group;
      const __m512i first = scales(block, t * kOfTile);
      const __m512i second = scales(block, t * kOfTile + kOfTile - 1);
      const auto each = [&]<int kQuad>() __attribute__((always_inline)) {
        quad(Micro::template codes<kQuad>(tile), kQuad < 4 ? first : second, upper + kQuad * 64,
             lower + kQuad * 64);
      };
      each.template operator()<0>();
      each.template operator()<1>();
      each.template operator()<2>();
      each.template operator()<3>();
      each.template operator()<4>();
      each.template operator()<5>();
      each.template operator()<6>();
      each.template operator()<7>();
    }
    if constexpr (kLayout.offsets) {
      const F32x16 scale = F32x16::load(reinterpret_cast<const Float16*>(block) + kPanelWidth);
      for (int g = 0; g < kGroups; ++g) {
        const __m512i bytes = Dot::unsigned_bytes(block + kLayout.offsets_at() + g * kPanelWidth);
        (Dot::to_float(bytes) * scale).store(out.offsets[g]);
      }
    }
  }
};

void configure(int rows) {
  TileConfig config;
  for (int tile = 0; tile < 4; ++tile) config.set(tile, rows, 64);  // sums
  config.set(4, rows, 64);                                          // activations
  config.set(5, rows, 64);
  config.set(6, 16, 64);  // weights
  config.set(7, 16, 64);
  config.load();
}

template <BlockShape kShape, int kPlanes>
class Rows {
 public:
  /// Rows first .. first + count - 1, at most kRowTiles tiles of them.
  Rows(const BlockProduct& p, int64_t first, int64_t count) : p_(p), first_(first), count_(count) {}

  void panel(int64_t panel) {
    const uint8_t* const from = p_.panels + panel * p_.blocks * kLayout.bytes();
    for (int64_t block = 0; block < p_.blocks; ++block) {
      Unpack<kShape>::block(from + block * kLayout.bytes(), stage_.block);
      scale_ = F32x16::load(reinterpret_cast<const Float16*>(from + block * kLayout.bytes()));
      for (int64_t row = 0; row < count_; row += kTileRows) row_tile(row, panel, block);
    }
  }

 private:
  static constexpr BlockLayout kLayout = block_layout(kShape);

  VERBATIM_INLINE void row_tile(int64_t row, int64_t panel, int64_t block) {
    // The last tile of rows begins early enough to be whole, unless there is but one; what two tiles have in
    // common is computed by the first alone.
    const int64_t rows = count_ - row < kTileRows ? count_ - row : kTileRows;
    const int64_t begin = rows < kTileRows && row > 0 ? count_ - kTileRows : row;
    const int8_t* const upper = p_.rows[first_ + begin].upper + block * kBlockInputs;
    const int8_t* const lower = kPlanes > 1 ? p_.rows[first_ + begin].lower + block * kBlockInputs : nullptr;
    tile_zero<0>();
    tile_zero<1>();
    if constexpr (kPlanes > 1) {
      tile_zero<2>();
      tile_zero<3>();
    }
    for (int step = 0; step < kSteps; ++step) {
      tile_load<4>(upper + step * kStepInputs, p_.row_stride);
      tile_load<6>(stage_.block.upper[step], 64);
      tile_dot_int8<0, 4, 6, false>();
      tile_load<7>(stage_.block.lower[step], 64);
      tile_dot_int8<1, 4, 7, false>();
      if constexpr (kPlanes > 1) {
        tile_load<5>(lower + step * kStepInputs, p_.row_stride);
        tile_dot_int8<2, 5, 6, false>();
        tile_dot_int8<3, 5, 7, false>();
      }
    }
    tile_store<0>(stage_.dots[0], 64);
    tile_store<1>(stage_.dots[1], 64);
    if constexpr (kPlanes > 1) {
      tile_store<2>(stage_.dots[2], 64);
      tile_store<3>(stage_.dots[3], 64);
    }
    for (int64_t r = row - begin; r < row - begin + rows; ++r) {
      float* const sums = stage_.sums + (begin + r) * kPanelWidth;
      F32x16 sum = block == 0 ? F32x16::set(0.0f) : F32x16::load(sums);
      sum = add(sum, p_.rows[first_ + begin + r], r, block);
      if (block + 1 < p_.blocks) {
        sum.store(sums);
      } else {
        sum.store(p_.c + (first_ + begin + r) * p_.c_stride + panel * kPanelWidth);
      }
    }
  }

  VERBATIM_INLINE __m512i joined(int of, int64_t r) const {
    const __m512i upper = _mm512_load_si512(stage_.dots[of] + r * kPanelWidth);
    const __m512i lower = _mm512_load_si512(stage_.dots[of + 1] + r * kPanelWidth);
    return _mm512_add_epi32(_mm512_slli_epi32(upper, 7), lower);
  }

  /// Adds a block's products to a row's sum, in the order of generic/blocks.h.
  VERBATIM_INLINE F32x16 add(F32x16 sum, const TwoByteRow& row, int64_t r, int64_t block) const {
    if constexpr (kLayout.offsets) {
      const float* const of_groups = (kLayout.group == 16 ? row.of_16 : row.of_32) + block * kLayout.groups();
      for (int g = 0; g < kLayout.groups(); ++g) {
        sum = fma(F32x16::load(stage_.block.offsets[g]), F32x16::set(of_groups[g]), sum);
      }
    }
    F32x16 total = avx512::VnniDot::to_float(joined(0, r)) * F32x16::set(256.0f);
    if constexpr (kPlanes > 1) total = total + avx512::VnniDot::to_float(joined(2, r));
    return fma(total * scale_, F32x16::set(row.steps[block]), sum);
  }

  struct alignas(4096) Stage {
    ScaledBlock block;
    int32_t dots[4][kTileSums];
    float sums[kRowTiles * kTileSums];
  };

  const BlockProduct& p_;
  int64_t first_;
  int64_t count_;
  F32x16 scale_ = {};
  Stage stage_;
};

template <BlockShape kShape, int kPlanes>
void multiply(const BlockProduct& p) {
  for (int64_t first = 0; first < p.row_count; first += kRowTiles * kTileRows) {
    const int64_t left = p.row_count - first;
    const int64_t count = left < kRowTiles * kTileRows ? left : kRowTiles * kTileRows;
    configure(static_cast<int>(count < kTileRows ? count : kTileRows));
    Rows<kShape, kPlanes> rows(p, first, count);
    for (int64_t panel = 0; panel < p.panel_count; ++panel) rows.panel(panel);
  }
  _tile_release();
}

template <BlockShape kShape>
void multiply(const BlockProduct& p) {
  p.rows[0].lower == nullptr ? multiply<kShape, 1>(p) : multiply<kShape, 2>(p);
}

}  // namespace

void block_product(const BlockProduct& p, BlockShape shape) {
  switch (shape) {
    case kBlockQ2:
      return multiply<kBlockQ2>(p);
    case kBlockQ3:
      return multiply<kBlockQ3>(p);
    case kBlockQ4:
      return multiply<kBlockQ4>(p);
    case kBlockQ5:
      return multiply<kBlockQ5>(p);
    default:
      return multiply<kBlockQ6>(p);
  }
}

}  // namespace verbatim::amx
