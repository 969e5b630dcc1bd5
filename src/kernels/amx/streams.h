#pragma once

#include "kernels/amx/bf16_blocks.h"
#include "kernels/generic/tiles.h"

namespace verbatim::amx {

/// The state of one stream: a place, and the Source's own state for it.
template <typename Source>
struct Stream {
  generic::TilePlace place;
  typename Source::Position position;
};

/// A product of up to 16 rows with weights that a Source unpacks to BF16 tile by tile:
///   kSpareWords                 the number of words after each tile that the Source may overwrite
///   start(place)                makes the Source's Position for the first tile of a panel
///   unpack(stream, out)         unpacks the tile at a stream's place
///   finish(stream, out)         completes that tile, after the next product
/// Two streams take equal shares of the panels, each its panels one after the other, and each panel its tiles
/// in order, so an output is the same chain of products as ever. A core that reads one place after the other
/// waits for the memory most of the time; but readings of several planes have several places in each stream,
/// and more streams would take more tile registers (docs/performance.md).
template <typename Source>
class PanelStreams {
 public:
  struct Product {
    const BFloat16* a;  ///< [tile][rows][32]
    int64_t rows;       ///< up to 16
    int64_t tiles;      ///< per panel
    float* c;           ///< of panel 0
    int64_t c_stride;
  };
  PanelStreams(const Source& source, const Product& product) : source_(source), product_(product) {}

  /// Multiplies with panels first .. first + count - 1. The tile registers must be configured as for wide
  /// blocks.
  void run(int64_t first, int64_t count) {
    const int64_t share = count / kSideBySide;
    if (share > 0) side_by_side<kSideBySide>(first, share);
    const int64_t done = share * kSideBySide;
    if (done < count) side_by_side<1>(first + done, count - done);
  }

 private:
  static constexpr int kSideBySide = 2;

  /// Runs kCount streams side by side, each over `share` panels. While one set of tiles is multiplied the
  /// next is unpacked, so that no tile is loaded right after it was written.
  template <int kCount>
  void side_by_side(int64_t first, int64_t share) {
    Stream<Source> streams[kCount];
    for (int j = 0; j < kCount; ++j) {
      const int64_t panel = first + j * share;
      const generic::TilePlace place = {panel, 0, panel * product_.tiles};
      streams[j] = {place, source_.start(place)};
    }
    int half = 0;
    for (int j = 0; j < kCount; ++j) {
      source_.unpack(streams[j], stages_[half].words[j]);
      finish(streams[j], stages_[half].words[j]);
    }
    for (int64_t panel = 0; panel < share; ++panel) {
      each_stream<kCount>([]<int kStream>() __attribute__((always_inline)) { tile_zero<kStream>(); });
      for (int64_t tile = 0; tile < product_.tiles; ++tile) {
        const bool more = panel + 1 < share || tile + 1 < product_.tiles;
        each_stream<kCount>([&]<int kStream>() __attribute__((always_inline)) {
          uint16_t* const next = stages_[half ^ 1].words[kStream];
          if (more) source_.unpack(streams[kStream], next);
          if constexpr (kStream == 0) {
            tile_load<4>(product_.a + tile * product_.rows * kInnerStep, kInnerStep * 2);
          }
          multiply<kStream>(stages_[half].words[kStream]);
          if (more) finish(streams[kStream], next);
        });
        half ^= 1;
      }
      float* const c = product_.c + (first + panel) * kPanelWidth;
      each_stream<kCount>([&]<int kStream>() __attribute__((always_inline)) {
        tile_store<kStream>(c + kStream * share * kPanelWidth, product_.c_stride * 4);
      });
    }
  }

  template <int kCount, typename Work>
  VERBATIM_INLINE static void each_stream(Work&& work) {
    static_assert(kSideBySide == 2);
    work.template operator()<0>();
    if constexpr (kCount > 1) work.template operator()<1>();
  }

  VERBATIM_INLINE void finish(Stream<Source>& stream, uint16_t* out) const {
    source_.finish(stream, out);
    move_on(stream);
  }
  VERBATIM_INLINE void move_on(Stream<Source>& stream) const {
    ++stream.place.index;
    if (++stream.place.tile < product_.tiles) return;
    stream.place.tile = 0;
    ++stream.place.panel;
  }

  template <int kStream>
  VERBATIM_INLINE static void multiply(const uint16_t* weights) {
    constexpr int kWeights = 5 + kStream;
    tile_load<kWeights>(weights, 64);
    tile_dot_bf16<kStream, 4, kWeights>();
  }

  /// The two sets of tiles that are unpacked and multiplied in turn. They lie here because loads of weights
  /// falsely wait for stores whose addresses agree in the last twelve bits, which would happen more often
  /// elsewhere.
  struct Stage {
    alignas(64) uint16_t words[kSideBySide][kTileElements + Source::kSpareWords];
  };

  Source source_;
  Product product_;
  alignas(4096) Stage stages_[2];
};

}  // namespace verbatim::amx
