#include "formats/k_quants.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/matrix.h"

namespace verbatim {

namespace {

constexpr uint64_t kShapeBits = 63;
constexpr BlockShape kShapesInTurn[] = {kBlockQ4, kBlockQ5, kBlockQ6, kBlockQ2, kBlockQ3};

uint64_t place(const PackedMatrix& matrix, int64_t panel) {
  return matrix.plane(0).as<const uint64_t>()[panel];
}

PackedMatrix allocate(int64_t columns, int64_t k, Element, const MatrixStatistics& statistics) {
  PackedMatrix matrix = make_matrix(Format::kKQuants, columns, k);
  matrix.planes.emplace_back(static_cast<size_t>(matrix.panels()) * sizeof(uint64_t));
  auto* const places = matrix.plane(0).as<uint64_t>();
  uint64_t bytes = 0;
  for (int64_t panel = 0; panel < matrix.panels(); ++panel) {
    const BlockShape shape = statistics.shapes.empty() ? kShapesInTurn[panel % std::size(kShapesInTurn)]
                                                       : statistics.shapes[static_cast<size_t>(panel)];
    places[panel] = bytes | static_cast<uint64_t>(shape);
    bytes += static_cast<uint64_t>(panel_bytes(shape, matrix.k));
  }
  matrix.planes.emplace_back(bytes);
  return matrix;
}

/// A byte of a tile's planes, and the place of a code's bits in it.
struct BitsPlace {
  int64_t byte;
  int from;
};
struct CodePlaces {
  BitsPlace nibble;
  BitsPlace pair;
  BitsPlace single;
};
/// The places of the code of an input of a block, counted from the beginning of the block.
CodePlaces places_of(const BlockLayout& layout, int64_t column, int64_t input) {
  const int64_t tile = layout.tiles_at() + input / kInnerStep * layout.tile_bytes();
  const int64_t quad = input % kInnerStep / 4;
  const int64_t byte = column * 4 + input % 4;
  const int64_t pairs = tile + 256 * layout.nibbles;
  const int64_t singles = pairs + 128 * layout.pairs;
  return {{tile + quad / 2 * 64 + byte, static_cast<int>(quad % 2 * 4)},
          {pairs + quad / 4 * 64 + byte, static_cast<int>(quad % 4 * 2)},
          {singles + byte, static_cast<int>(quad)}};
}

void put_block(const BlockLayout& layout, int64_t column, const KQuantBlock& source, uint8_t* block) {
  auto* const scales = reinterpret_cast<Float16*>(block);
  scales[column] = source.scale;
  scales[kPanelWidth + column] = source.offset;
  for (int group = 0; group < layout.groups(); ++group) {
    const int64_t at = group * kPanelWidth + column;
    block[layout.scales_at() + at] = static_cast<uint8_t>(source.scales[group]);
    if (layout.offsets) block[layout.offsets_at() + at] = source.offsets[group];
  }
  for (int64_t i = 0; i < kBlockInputs; ++i) {
    const CodePlaces places = places_of(layout, column, i);
    int code = source.codes[i];
    const auto put = [&](BitsPlace at, int bits) {
      block[at.byte] |= static_cast<uint8_t>((code & ((1 << bits) - 1)) << at.from);
      code >>= bits;
    };
    if (layout.nibbles != 0) put(places.nibble, 4);
    if (layout.pairs != 0) put(places.pair, 2);
    if (layout.singles != 0) put(places.single, 1);
  }
}

int get_code(const BlockLayout& layout, const uint8_t* block, int64_t column, int64_t input) {
  const CodePlaces places = places_of(layout, column, input);
  int code = 0;
  int to = 0;
  const auto get = [&](BitsPlace at, int bits) {
    code |= (block[at.byte] >> at.from & ((1 << bits) - 1)) << to;
    to += bits;
  };
  if (layout.nibbles != 0) get(places.nibble, 4);
  if (layout.pairs != 0) get(places.pair, 2);
  if (layout.singles != 0) get(places.single, 1);
  return code;
}

Float16 bounded_float16(float value) {
  return to_float16(std::clamp(value, -65504.0f, 65504.0f));
}

int nearest(float value, int least, int most) {
  return static_cast<int>(
      std::clamp(std::nearbyint(value), static_cast<float>(least), static_cast<float>(most)));
}

/// Rounds 256 finite weights to a block of a shape.
KQuantBlock round_block(const BlockLayout& layout, const float* weights) {
  KQuantBlock block{};
  const int most_code = (1 << layout.bits()) - 1;
  const int most_scale = !layout.offsets ? (layout.bits() == 6 ? 127 : 31) : layout.bits() == 2 ? 15 : 63;
  float steps[16] = {};
  float offsets[16] = {};
  for (int group = 0; group < layout.groups(); ++group) {
    const float* const first = weights + group * layout.group;
    const auto [low, high] = std::minmax_element(first, first + layout.group);
    const float lowest = std::min(*low, 0.0f);
    const float highest = std::max(*high, 0.0f);
    offsets[group] = layout.offsets ? -lowest : 0.0f;
    steps[group] = layout.offsets ? (highest - lowest) / static_cast<float>(most_code)
                                  : std::max(-lowest, highest) / static_cast<float>(layout.bias);
  }
  block.scale = bounded_float16(*std::max_element(steps, steps + 16) / static_cast<float>(most_scale));
  block.offset = bounded_float16(*std::max_element(offsets, offsets + 16) / static_cast<float>(most_scale));
  const float scale = to_float(block.scale);
  const float offset = to_float(block.offset);
  for (int group = 0; group < layout.groups(); ++group) {
    const int group_scale = scale > 0.0f ? nearest(steps[group] / scale, 0, most_scale) : 0;
    const int group_offset = offset > 0.0f ? nearest(offsets[group] / offset, 0, most_scale) : 0;
    block.scales[group] = static_cast<int8_t>(group_scale);
    block.offsets[group] = static_cast<uint8_t>(group_offset);
    const float step = scale * static_cast<float>(group_scale);
    const float least = offset * static_cast<float>(group_offset);
    for (int i = group * layout.group; i < (group + 1) * layout.group; ++i) {
      const float code = step > 0.0f ? (weights[i] + least) / step : 0.0f;
      block.codes[i] = static_cast<uint8_t>(nearest(code + static_cast<float>(layout.bias), 0, most_code));
    }
  }
  return block;
}

void pack_panel(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics&, PanelTail&) {
  const BlockLayout layout = block_layout(panel_shape(matrix, source.panel));
  uint8_t* const panel = matrix.plane(1).as<uint8_t>() + (place(matrix, source.panel) & ~kShapeBits);
  const int64_t blocks = blocks_of(matrix.k);
  for (int64_t column = 0; column < source.column_count; ++column) {
    for (int64_t b = 0; b < blocks; ++b) {
      uint8_t* const block = panel + b * layout.bytes();
      if (!source.blocks.empty()) {
        put_block(layout, column, source.blocks[static_cast<size_t>(column * blocks + b)], block);
        continue;
      }
      float weights[kBlockInputs];
      for (int64_t i = 0; i < kBlockInputs; ++i) {
        const float weight = source.at(column, b * kBlockInputs + i);
        weights[i] = std::isfinite(weight) ? weight : 0.0f;
      }
      put_block(layout, column, round_block(layout, weights), block);
    }
  }
}

void validate(const PackedMatrix& matrix) {
  check_plane(matrix, 0, static_cast<size_t>(matrix.panels()) * sizeof(uint64_t));
  uint64_t bytes = 0;
  for (int64_t panel = 0; panel < matrix.panels(); ++panel) {
    const uint64_t at = place(matrix, panel);
    if ((at & kShapeBits) >= kBlockShapes || (at & ~kShapeBits) != bytes) {
      bad_input("panel {} of a matrix in {} is not where it must be", panel, format_name(matrix.format));
    }
    bytes += static_cast<uint64_t>(panel_bytes(panel_shape(matrix, panel), matrix.k));
  }
  check_plane(matrix, 1, bytes);
}

void unpack_column(const PackedMatrix& matrix, Reading, int64_t column, std::span<float> out) {
  const int64_t panel = column / kPanelWidth;
  const int64_t i = column % kPanelWidth;
  const BlockLayout layout = block_layout(panel_shape(matrix, panel));
  for (int64_t k = 0; k < matrix.k; ++k) {
    const uint8_t* const block = panel_blocks(matrix, panel) + k / kBlockInputs * layout.bytes();
    const auto* const scales = reinterpret_cast<const Float16*>(block);
    const int64_t input = k % kBlockInputs;
    const int64_t group = input / layout.group * kPanelWidth + i;
    const uint8_t scale = block[layout.scales_at() + group];
    const float step =
        to_float(scales[i]) * (layout.offsets ? static_cast<float>(scale & layout.scale_bits())
                                              : static_cast<float>(static_cast<int8_t>(scale)));
    float weight = step * static_cast<float>(get_code(layout, block, i, input) - layout.bias);
    if (layout.offsets) {
      weight -= to_float(scales[kPanelWidth + i]) * static_cast<float>(block[layout.offsets_at() + group]);
    }
    out[static_cast<size_t>(k)] = weight;
  }
}

int64_t bytes_read(const PackedMatrix& matrix, Reading) {
  const int64_t last = matrix.panels() - 1;
  return static_cast<int64_t>(place(matrix, last) & ~kShapeBits) +
         panel_bytes(panel_shape(matrix, last), matrix.k) + matrix.panels() * int64_t{sizeof(uint64_t)};
}

}  // namespace

std::vector<BlockShape> panel_shapes(std::span<const ShapedColumns> parts) {
  std::vector<BlockShape> shapes;
  int64_t column = 0;
  for (const ShapedColumns& part : parts) {
    if (!part.shape || (column % kPanelWidth != 0 && shapes.back() != *part.shape)) return {};
    column += part.count;
    shapes.resize(static_cast<size_t>(ceil_div(column, kPanelWidth)), *part.shape);
  }
  return shapes;
}

BlockShape panel_shape(const PackedMatrix& matrix, int64_t panel) {
  return static_cast<BlockShape>(place(matrix, panel) & kShapeBits);
}

const uint8_t* panel_blocks(const PackedMatrix& matrix, int64_t panel) {
  return matrix.plane(1).as<const uint8_t>() + (place(matrix, panel) & ~kShapeBits);
}

const FormatOperations& k_quants_operations() {
  static constexpr FormatOperations kOperations = {allocate, pack_panel,    nullptr,
                                                   validate, unpack_column, bytes_read};
  return kOperations;
}

}  // namespace verbatim
