#pragma once

#include "kernels/amx/bf16_blocks.h"

namespace verbatim::amx {

/// A product of up to 16 rows with weights in BF16, whose tiles are loaded from where they lie in memory. Its
/// speed depends on the order in which cache lines are requested: a core that reads four places side by side
/// gets five sixths of the bandwidth of eight, and the registers have room for the sums of six. Before each
/// tile product a share of the lines of every stream's tile after the next is requested. Each stream is one
/// tile behind the stream before it, so that their pages do not end, and the hardware's prefetchers do not
/// start anew, all at the same time.
///
/// An output is the same chain of tile products over k in order as in all other products (bf16_blocks.h).
class Bf16Streams {
 public:
  struct Product {
    const BFloat16* a;       ///< [tile][rows][32]
    int64_t rows;            ///< up to 16
    const uint8_t* weights;  ///< the weights of panel 0
    int64_t tiles;           ///< the number of tiles in a panel
    float* c;                ///< the results of panel 0
    int64_t c_stride;
  };
  explicit Bf16Streams(const Product& product) : product_(product) {}

  /// Multiplies with panels first .. first + count - 1. Leaves the tile registers configured.
  void run(int64_t first, int64_t count) const {
    configure();
    const int64_t share = count / kStreams;
    if (share > 0) side_by_side<kStreams>(first, share);
    const int64_t done = first + share * kStreams;
    switch (count % kStreams) {
      case 1:
        return side_by_side<1>(done, 1);
      case 2:
        return side_by_side<2>(done, 1);
      case 3:
        return side_by_side<3>(done, 1);
      case 4:
        return side_by_side<4>(done, 1);
      case 5:
        return side_by_side<5>(done, 1);
      default:
        return;
    }
  }

 private:
  // Sums are in tiles 0..5.
  static constexpr int kStreams = 6;
  static constexpr int kActivations = 6;
  static constexpr int kWeights = 7;

  static constexpr int64_t kTileBytes = kTileElements * 2;
  static constexpr int kTileLines = kTileBytes / 64;
  static constexpr int64_t kPrefetchBytes = 2048;
  static constexpr int64_t kLag = 1;

  /// The state of one stream.
  struct Stream {
    const uint8_t* weights;
    float* c;      ///< the results of the current panel
    int64_t tile;  ///< the current tile of the panel
  };

  void configure() const {
    TileConfig config;
    for (int tile = 0; tile <= kActivations; ++tile) config.set(tile, static_cast<int>(product_.rows), 64);
    config.set(kWeights, 16, 64);
    config.load();
  }

  /// Runs kCount streams side by side, each over `share` neighbouring panels.
  template <int kCount>
  void side_by_side(int64_t first, int64_t share) const {
    Stream streams[kCount];
    for (int j = 0; j < kCount; ++j) {
      const int64_t panel = first + j * share;
      streams[j] = {product_.weights + panel * product_.tiles * kTileBytes, product_.c + panel * kPanelWidth,
                    0};
    }
    each_stream<kCount>([]<int kStream>() __attribute__((always_inline)) { tile_zero<kStream>(); });
    const int64_t steps = share * product_.tiles;
    constexpr int64_t kAllBegun = (kCount - 1) * kLag;
    int64_t round = 0;
    for (; round < kAllBegun; ++round) some(streams, round, steps);
    for (; round < steps; ++round) {
      each_stream<kCount>([&]<int kStream>() __attribute__((always_inline)) {
        prefetch<kStream>(streams);
        multiply<kStream>(streams[kStream]);
      });
    }
    for (; round < steps + kAllBegun; ++round) some(streams, round, steps);
  }

  /// Runs one round: a tile of every stream that has begun and not ended.
  template <int kCount>
  void some(Stream (&streams)[kCount], int64_t round, int64_t steps) const {
    each_stream<kCount>([&]<int kStream>() __attribute__((always_inline)) {
      const int64_t step = round - kStream * kLag;
      if (step < 0 || step >= steps) return;
      prefetch_lines(streams[kStream].weights + kPrefetchBytes, kTileLines);
      multiply<kStream>(streams[kStream]);
    });
  }

  template <int kStream>
  VERBATIM_INLINE void multiply(Stream& stream) const {
    tile_load<kActivations>(product_.a + stream.tile * product_.rows * kInnerStep, kInnerStep * 2);
    tile_load<kWeights>(stream.weights, 64);
    tile_dot_bf16<kStream, kActivations, kWeights>();
    stream.weights += kTileBytes;
    if (++stream.tile < product_.tiles) return;
    tile_store<kStream>(stream.c, product_.c_stride * 4);
    tile_zero<kStream>();
    stream.c += kPanelWidth;
    stream.tile = 0;
  }

  /// Requests a share of the lines of every stream's tile, before the turn of stream kStream. Streams before
  /// it in the round have moved on to their next tile already.
  template <int kStream, int kCount>
  VERBATIM_INLINE static void prefetch(const Stream (&streams)[kCount]) {
    constexpr int kFirst = kStream * kTileLines / kCount;
    constexpr int kEnd = (kStream + 1) * kTileLines / kCount;
    for (int j = 0; j < kCount; ++j) {
      const int64_t moved = j < kStream ? kTileBytes : 0;
      prefetch_lines(streams[j].weights - moved + kPrefetchBytes + int64_t{kFirst} * 64, kEnd - kFirst);
    }
  }

  template <int kCount, typename Work>
  VERBATIM_INLINE static void each_stream(Work&& work) {
    static_assert(kStreams == 6);
    work.template operator()<0>();
    if constexpr (kCount > 1) work.template operator()<1>();
    if constexpr (kCount > 2) work.template operator()<2>();
    if constexpr (kCount > 3) work.template operator()<3>();
    if constexpr (kCount > 4) work.template operator()<4>();
    if constexpr (kCount > 5) work.template operator()<5>();
  }

  Product product_;
};

}  // namespace verbatim::amx
