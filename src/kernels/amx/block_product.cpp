#include "kernels/amx/products.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512/vnni_dot.h"
#include "kernels/generic/block_codes.h"

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

/// A block with the scales of its groups multiplied into the weights: scale · (code - bias) is upper ·
/// 2^shift + lower. So all of a block's products are sums of one, in integers.
struct ScaledBlock {
  alignas(64) int8_t upper[kSteps][1024];
  alignas(64) int8_t lower[kSteps][1024];
  alignas(64) float offsets[16][kPanelWidth];
};

template <BlockShape kShape>
struct Unpack {
  using Dot = avx512::VnniDot;
  using Codes = generic::BlockCodes<Dot, kShape>;
  static constexpr BlockLayout kLayout = block_layout(kShape);
  /// Of scales without a sign, the upper and the lower three bits are multiplied apart: 31 · 7 fits into a
  /// byte, so that a product of 16-bit words is two of bytes. All others are multiplied as words and then
  /// cut.
  static constexpr bool kUnsigned = kLayout.offsets;
  static constexpr int kShift = kUnsigned ? 3 : 7;

  /// The weights of a quad as words: bytes 0 and 2 and bytes 1 and 3 of each column.
  VERBATIM_INLINE static void cut(__m512i codes, __m512i scales, int8_t* upper, int8_t* lower) {
    const __m512i bytes = _mm512_set1_epi16(255);
    const __m512i even = Dot::weights<kLayout.bias>(Dot::even_words(codes), scales);
    const __m512i odd = Dot::weights<kLayout.bias>(Dot::odd_words(codes), scales);
    // Shifted up by one, the upper byte of a word is the upper part, and the lower byte twice the lower one.
    const __m512i evens = _mm512_slli_epi16(even, 1);
    const __m512i odds = _mm512_slli_epi16(odd, 1);
    constexpr int kSelect = 0xca;  // the second where the mask has ones, the third where it has zeros
    const __m512i high = _mm512_ternarylogic_epi64(bytes, _mm512_srli_epi16(evens, 8), odds, kSelect);
    const __m512i low = _mm512_ternarylogic_epi64(bytes, even, _mm512_slli_epi16(odd, 8), kSelect);
    _mm512_store_si512(upper, high);
    _mm512_store_si512(lower, _mm512_and_si512(low, _mm512_set1_epi8(127)));
  }

  /// The scales of a group for the bytes of its columns: for kUnsigned their upper and lower bits, else both
  /// the same.
  struct Scales {
    __m512i upper;
    __m512i lower;
  };
  VERBATIM_INLINE static Scales scales(const uint8_t* block, int group) {
    const __m512i wide = Codes::scales(block, group);
    if constexpr (!kUnsigned) return {Dot::in_words(wide), Dot::in_words(wide)};
    return {Dot::in_words(_mm512_srli_epi32(wide, 3)),
            Dot::in_words(_mm512_and_si512(wide, _mm512_set1_epi32(7)))};
  }

  VERBATIM_INLINE static void quad(__m512i codes, const Scales& scales, int8_t* upper, int8_t* lower) {
    if constexpr (kUnsigned) {
      _mm512_store_si512(upper, _mm512_mullo_epi16(codes, scales.upper));
      _mm512_store_si512(lower, _mm512_mullo_epi16(codes, scales.lower));
    } else {
      cut(codes, scales.upper, upper, lower);
    }
  }

  static void block(const uint8_t* block, ScaledBlock& out) {
    constexpr int64_t kAhead = 2;  // blocks
    for (int64_t line = 0; line < kLayout.bytes(); line += 64) {
      __builtin_prefetch(block + kAhead * kLayout.bytes() + line);
    }
    for (int t = 0; t < static_cast<int>(kBlockInputs / kInnerStep); ++t) {
      const uint8_t* const tile = block + kLayout.tiles_at() + t * kLayout.tile_bytes();
      int8_t* const upper = out.upper[t / 2] + t % 2 * 512;
      int8_t* const lower = out.lower[t / 2] + t % 2 * 512;
      constexpr int kOfTile = kInnerStep / kLayout.group;
      const Scales first = scales(block, t * kOfTile);
      const Scales second = kOfTile > 1 ? scales(block, t * kOfTile + 1) : first;
      const auto each = [&]<int kQuad>() __attribute__((always_inline)) {
        quad(Codes::template codes<kQuad>(tile), kQuad < 4 ? first : second, upper + kQuad * 64,
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
      for (int g = 0; g < kLayout.groups(); ++g) {
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

/// Rows first .. first + count - 1, at most kRowTiles tiles of them, by panels one after the other. Unpacking
/// is a block ahead of multiplying, and scaling a tile of rows behind it, so that none waits for what was
/// just written.
template <BlockShape kShape, int kPlanes>
class Rows {
 public:
  Rows(const BlockProduct& p, int64_t first, int64_t count) : p_(p), first_(first), count_(count) {}

  void run() {
    const int64_t all = p_.panel_count * p_.blocks;
    Unpack<kShape>::block(p_.panels, stage_.blocks[0]);
    for (int64_t index = 0; index < all; ++index) {
      for (int64_t row = 0; row < count_; row += kTileRows) {
        dots_ ^= 1;
        multiply(row, index);
        add_waiting(dots_ ^ 1);
        waiting_ = {row, index};
        if (row == 0 && index + 1 < all) {
          Unpack<kShape>::block(p_.panels + (index + 1) * kLayout.bytes(), stage_.blocks[(index + 1) % 2]);
        }
      }
    }
    add_waiting(dots_);
  }

 private:
  static constexpr BlockLayout kLayout = block_layout(kShape);
  static constexpr bool kUnsigned = Unpack<kShape>::kUnsigned;

  /// The first row of the tile that begins at `row`. The last tile of several begins early enough to be
  /// whole; what it has in common with the one before it is computed there.
  int64_t begin_of(int64_t row) const {
    return row > 0 && count_ - row < kTileRows ? count_ - kTileRows : row;
  }

  /// The products of a tile of rows with a block, counted over all panels.
  VERBATIM_INLINE void multiply(int64_t row, int64_t index) {
    const int64_t at = index % p_.blocks * kBlockInputs;
    const TwoByteRow& rows = p_.rows[first_ + begin_of(row)];
    const ScaledBlock& block = stage_.blocks[index % 2];
    int32_t* const dots = stage_.dots[dots_][0];
    tile_zero<0>();
    tile_zero<1>();
    if constexpr (kPlanes > 1) {
      tile_zero<2>();
      tile_zero<3>();
    }
    for (int step = 0; step < kSteps; ++step) {
      tile_load<4>(rows.upper + at + step * kStepInputs, p_.row_stride);
      tile_load<6>(block.upper[step], 64);
      tile_dot_int8<0, 4, 6, kUnsigned>();
      tile_load<7>(block.lower[step], 64);
      tile_dot_int8<1, 4, 7, kUnsigned>();
      if constexpr (kPlanes > 1) {
        tile_load<5>(rows.lower + at + step * kStepInputs, p_.row_stride);
        tile_dot_int8<2, 5, 6, kUnsigned>();
        tile_dot_int8<3, 5, 7, kUnsigned>();
      }
    }
    tile_store<0>(dots, 64);
    tile_store<1>(dots + kTileSums, 64);
    if constexpr (kPlanes > 1) {
      tile_store<2>(dots + 2 * kTileSums, 64);
      tile_store<3>(dots + 3 * kTileSums, 64);
    }
  }

  /// Adds the products that were put into a buffer to the sums of their rows; after a panel's last block
  /// writes the sums to c.
  VERBATIM_INLINE void add_waiting(int buffer) {
    if (waiting_.row < 0) return;
    const int64_t begin = begin_of(waiting_.row);
    const int64_t end = waiting_.row + kTileRows < count_ ? waiting_.row + kTileRows : count_;
    const int64_t block = waiting_.index % p_.blocks;
    const int64_t panel = waiting_.index / p_.blocks;
    const auto* const scales = reinterpret_cast<const Float16*>(p_.panels + waiting_.index * kLayout.bytes());
    const F32x16 scale = F32x16::load(scales);
    const ScaledBlock& scaled = stage_.blocks[waiting_.index % 2];
    for (int64_t r = waiting_.row; r < end; ++r) {
      float* const sums = stage_.sums + r * kPanelWidth;
      F32x16 sum = block == 0 ? F32x16::set(0.0f) : F32x16::load(sums);
      sum = add(sum, p_.rows[first_ + r], stage_.dots[buffer][0] + (r - begin) * kPanelWidth, scaled, scale,
                block);
      if (block + 1 < p_.blocks) {
        sum.store(sums);
      } else {
        sum.store(p_.c + (first_ + r) * p_.c_stride + panel * kPanelWidth);
      }
    }
  }

  VERBATIM_INLINE static __m512i joined(const int32_t* dots) {
    const __m512i upper = _mm512_load_si512(dots);
    const __m512i lower = _mm512_load_si512(dots + kTileSums);
    return _mm512_add_epi32(_mm512_slli_epi32(upper, Unpack<kShape>::kShift), lower);
  }

  /// The products of a block with the bytes of a row, as a float.
  VERBATIM_INLINE static F32x16 value(const int32_t* dots) {
    using Dot = avx512::VnniDot;
    if constexpr (kPlanes > 1) {
      return generic::value_of_block<F32x16, Dot>(joined(dots), joined(dots + 2 * kTileSums));
    } else {
      return Dot::to_float(joined(dots)) * F32x16::set(256.0f);
    }
  }

  /// Adds a block's products to a row's sum, in the order of generic/blocks.h.
  VERBATIM_INLINE F32x16 add(F32x16 sum, const TwoByteRow& row, const int32_t* dots,
                             const ScaledBlock& scaled, F32x16 scale, int64_t block) const {
    if constexpr (kLayout.offsets) {
      const float* const of_groups = (kLayout.group == 16 ? row.of_16 : row.of_32) + block * kLayout.groups();
      for (int g = 0; g < kLayout.groups(); ++g) {
        sum = fma(F32x16::load(scaled.offsets[g]), F32x16::set(of_groups[g]), sum);
      }
    }
    return fma(value(dots) * scale, F32x16::set(row.steps[block]), sum);
  }

  struct Waiting {
    int64_t row;    ///< the first of the tile, or -1
    int64_t index;  ///< of the block
  };
  /// Page aligned, so that its stores are not taken for what the loads of weights wait for more often than
  /// need be.
  struct alignas(4096) Stage {
    ScaledBlock blocks[2];
    alignas(64) int32_t dots[2][4][kTileSums];
    alignas(64) float sums[kRowTiles * kTileSums];
  };

  const BlockProduct& p_;
  int64_t first_;
  int64_t count_;
  int dots_ = 0;
  Waiting waiting_ = {-1, 0};
  Stage stage_;
};

template <BlockShape kShape, int kPlanes>
void multiply(const BlockProduct& p) {
  for (int64_t first = 0; first < p.row_count; first += kRowTiles * kTileRows) {
    const int64_t left = p.row_count - first;
    const int64_t count = left < kRowTiles * kTileRows ? left : kRowTiles * kTileRows;
    configure(static_cast<int>(count < kTileRows ? count : kTileRows));
    Rows<kShape, kPlanes>(p, first, count).run();
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
