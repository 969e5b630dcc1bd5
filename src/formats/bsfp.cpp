#include "formats/bsfp.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/matrix.h"
#include "formats/escaped_weights.h"
#include "formats/tile_codes.h"

namespace verbatim {

namespace {

constexpr int kEscaped = 4;
constexpr int kTableWords = 32;

/// The range of draft scales: within it no sum over a group of products with int8 activations is infinite.
constexpr float kLeastScale = 0x1p-57f;
constexpr float kLargestScale = 0x1p16f;
/// The number of significant bits of a draft scale. More would hardly improve drafts, whose magnitudes are
/// powers of two.
constexpr int kScaleBits = 6;

/// The code of each exponent e, with the flag in bit 4.
constexpr uint8_t kCodes[16] = {0x11, 0x11, 0x01, 0x01, 0x13, 0x13, 0x03, 0x03,
                                0x04, 0x10, 0x05, 0x12, 0x06, 0x06, 0x07, 0x07};
/// The magnitude of a draft for a scale of 1, by its code.
constexpr float kDraftMagnitudes[8] = {1.0f, 0.0f, 4.0f, 0.0f, 0.5f, 2.0f, 8.0f, 32.0f};
/// The same as the paper has it, where no draft is zero.
constexpr float kPaperMagnitudes[8] = {1.0f, 0x1p-7f, 4.0f, 0x1p-3f, 0.5f, 2.0f, 8.0f, 32.0f};
/// The upper three bits of e where the flag is set, by the code.
constexpr int kFlaggedUpper[8] = {4, 0, 5, 2, 0, 0, 0, 0};

/// The differences between the two types of elements.
struct Layout {
  int mantissa_bits;
  int64_t rest_bytes;
};
Layout layout_of(Element element) {
  return element == Element::kBf16 ? Layout{7, 576} : Layout{10, 768};
}

/// The draft code, with the flag in bit 4, of a weight with this exponent, counted from the window's first.
uint8_t code_of(int e) {
  return kCodes[std::clamp(e, 0, 15)];
}

/// The first exponent field of the window in which the drafts come nearest to the weights, measured by the
/// squared error with one scale for all. A weight outside the window is escaped.
int best_window(Element element, const MatrixStatistics& statistics) {
  // Fields of F16 count from 112 of a float's; its subnormal numbers have the field 0.
  const int first = element == Element::kBf16 ? 0 : 112;
  const int last = element == Element::kBf16 ? 240 : 16;
  // The error is least where this is largest: Σ w² - (Σ w q)² / Σ q².
  const auto explained = [&](int window) {
    double products = 0.0;
    double squares = 0.0;
    for (size_t bin = 0; bin < statistics.magnitudes.size(); ++bin) {
      const auto count = static_cast<double>(statistics.magnitudes[bin]);
      if (count == 0.0) continue;
      const int field = static_cast<int>(bin / 8);
      const double magnitude = std::ldexp(1.0 + (static_cast<double>(bin % 8) + 0.5) / 8.0, field - 127);
      const double q = kDraftMagnitudes[code_of(std::max(field - first, 0) - window) & 7];
      products += count * magnitude * q;
      squares += count * q * q;
    }
    return squares > 0.0 ? products * products / squares : 0.0;
  };
  int best = 112 - first;  // the paper's, for weights below 2
  double most = explained(best);
  // The first field is even, because the lowest bit of the exponent is stored as it is and completes the
  // upper bits, which come from the table.
  for (int window = 0; window <= last; window += 2) {
    const double now = explained(window);
    if (now > most) {
      most = now;
      best = window;
    }
  }
  return best;
}

uint16_t bits_of(Element element, float weight) {
  return element == Element::kBf16 ? to_bfloat16(weight).bits : to_float16(weight).bits;
}

size_t tile_count(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.panels() * matrix.tiles());
}
size_t scale_bytes(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.columns * scale_groups(matrix)) * sizeof(BFloat16);
}

/// The exponent field whose e is 0: the lower entries of the table hold it.
int window_of(const PackedMatrix& matrix) {
  const Layout layout = layout_of(matrix.element);
  // Flag 1, code 1 stands for e = 0.
  return (matrix.plane(3).as<uint16_t>()[0x11] & 0x7fff) >> layout.mantissa_bits;
}

PackedMatrix allocate(int64_t columns, int64_t k, Element element, const MatrixStatistics& statistics) {
  PackedMatrix matrix = make_matrix(Format::kBsfp, columns, k);
  matrix.element = element;
  const Layout layout = layout_of(element);
  matrix.planes.emplace_back(code_plane_bytes(matrix));
  matrix.planes.emplace_back(scale_bytes(matrix));
  matrix.planes.emplace_back(tile_count(matrix) * static_cast<size_t>(layout.rest_bytes));
  matrix.planes.emplace_back(kTableWords * sizeof(uint16_t));
  const int window = best_window(element, statistics);
  for (int index = 0; index < kTableWords; ++index) {
    const int upper = index >= 16 ? kFlaggedUpper[index & 7] : index & 7;
    const int exponent = window + 2 * upper;
    matrix.plane(3).as<uint16_t>()[index] =
        static_cast<uint16_t>((index & 8) << 12 | exponent << layout.mantissa_bits);
  }
  add_count_plane(matrix);
  return matrix;
}

/// The place of a weight in its half tile, in the order of the panel that it is unpacked to.
uint8_t position(Element element, int64_t column, int64_t k) {
  const int64_t i = column % kPanelWidth;
  return static_cast<uint8_t>(element == Element::kBf16 ? k % 16 / 2 * 32 + i * 2 + k % 2 : k % 16 * 16 + i);
}

/// Writes the bits of a weight that are not part of its code: flag, lowest exponent bit and mantissa.
void put_rest(const PackedMatrix& matrix, int64_t column, int64_t k, uint16_t bits, bool flag) {
  const Layout layout = layout_of(matrix.element);
  uint8_t* const rest = matrix.plane(2).as<uint8_t>() + tile_index(matrix, column, k) * layout.rest_bytes;
  rest[rest_byte(column, k)] = static_cast<uint8_t>(bits & 0xff);  // BF16: exponent bit and mantissa
  if (matrix.element == Element::kBf16) {
    uint16_t* const flags = reinterpret_cast<uint16_t*>(rest + 512);
    const int64_t lane = column % kPanelWidth * 2 + k % 2;
    flags[lane] = static_cast<uint16_t>(flags[lane] | (flag ? 1 << (k % kInnerStep / 2) : 0));
  } else {
    const int nibble = (flag ? 8 : 0) | ((bits >> 8) & 7);
    const int64_t byte = code_byte(matrix, column, k) % kCodeTileBytes;
    rest[512 + byte] = static_cast<uint8_t>(rest[512 + byte] | (k / 4 % 2 == 1 ? nibble << 4 : nibble));
  }
}

/// Rounds to kScaleBits significant bits.
BFloat16 to_scale(double scale) {
  const double clamped = std::clamp<double>(scale, kLeastScale, kLargestScale);
  const int exponent = std::ilogb(clamped) - (kScaleBits - 1);
  return to_bfloat16(
      static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(clamped, -exponent)), exponent)));
}

/// Draft scales: s = Σ w q / Σ q² over each group, q the draft value for s = 1 (SPEQ eq. 4).
void pack_scales(const PackedMatrix& matrix, const PanelSource& source) {
  const uint8_t* const codes = matrix.plane(0).as<uint8_t>();
  BFloat16* const scales = matrix.plane(1).as<BFloat16>();
  for (int64_t i = 0; i < source.column_count; ++i) {
    const int64_t column = source.panel * kPanelWidth + i;
    for (int64_t begin = 0; begin < matrix.k; begin += kScaleGroup) {
      double products = 0.0;
      double squares = 0.0;
      for (int64_t k = begin; k < std::min(begin + kScaleGroup, source.inputs()); ++k) {
        const uint8_t code = get_code(codes, matrix, column, k);
        const double q = (code & 8) != 0 ? -kDraftMagnitudes[code & 7] : kDraftMagnitudes[code & 7];
        const double w = source.at(i, k);
        if (!std::isfinite(w)) continue;
        products += w * q;
        squares += q * q;
      }
      scales[scale_index(matrix, column, begin)] = to_scale(squares > 0.0 ? products / squares : 0.0);
    }
  }
}

void pack_panel(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics&, PanelTail& tail) {
  const Layout layout = layout_of(matrix.element);
  const int window = window_of(matrix);
  uint8_t* const codes = matrix.plane(0).as<uint8_t>();
  uint8_t* const counts = matrix.plane(kEscaped).as<uint8_t>();
  for (int64_t begin = 0; begin < matrix.k; begin += 16) {
    HalfTile half;
    for (int64_t i = 0; i < kPanelWidth; ++i) {
      const int64_t column = source.panel * kPanelWidth + i;
      for (int64_t k = begin; k < begin + 16; ++k) {
        const uint16_t bits = bits_of(matrix.element, source.at(i, k));
        const int e = ((bits & 0x7fff) >> layout.mantissa_bits) - window;
        const bool coded = e >= 0 && e <= 15;
        half.add(position(matrix.element, column, k), bits, !coded);
        const uint8_t entry = code_of(e);
        put_code(codes, matrix, column, k, static_cast<uint8_t>((entry & 7) | (bits >> 15 << 3)));
        put_rest(matrix, column, k, bits, entry >= 16);
      }
    }
    counts[(source.panel * matrix.tiles() + begin / kInnerStep) * 2 + begin / 16 % 2] = half.finish(tail);
  }
  pack_scales(matrix, source);
}

void finish(PackedMatrix& matrix, std::span<const PanelTail> tails) {
  gather_escaped_weights(matrix, kEscaped, tails);
}

void validate(const PackedMatrix& matrix) {
  check_plane(matrix, 0, code_plane_bytes(matrix));
  check_plane(matrix, 1, scale_bytes(matrix));
  check_plane(matrix, 2, tile_count(matrix) * static_cast<size_t>(layout_of(matrix.element).rest_bytes));
  check_plane(matrix, 3, kTableWords * sizeof(uint16_t));
  if (matrix.element == Element::kBf16) {
    // A byte of the weight completes an entry, so kernels take the upper bytes alone.
    const uint16_t* const table = matrix.plane(3).as<uint16_t>();
    if (std::any_of(table, table + kTableWords, [](uint16_t entry) { return (entry & 0xff) != 0; }))
      bad_input("the table of a matrix in bsfp has entries with bits below the upper seven of the exponent");
  }
  validate_escaped_weights(matrix, kEscaped);
}

float draft_value(const PackedMatrix& matrix, const float (&magnitudes)[8], int64_t column, int64_t k) {
  const uint8_t code = get_code(matrix.plane(0).as<uint8_t>(), matrix, column, k);
  const float scale = to_float(matrix.plane(1).as<BFloat16>()[scale_index(matrix, column, k)]);
  return (code & 8) != 0 ? -magnitudes[code & 7] * scale : magnitudes[code & 7] * scale;
}

/// The bits of a weight that is not escaped.
uint16_t full_bits(const PackedMatrix& matrix, int64_t column, int64_t k) {
  const Layout layout = layout_of(matrix.element);
  const uint8_t* const rest =
      matrix.plane(2).as<uint8_t>() + tile_index(matrix, column, k) * layout.rest_bytes;
  const uint8_t code = get_code(matrix.plane(0).as<uint8_t>(), matrix, column, k);
  const uint16_t* const table = matrix.plane(3).as<uint16_t>();
  const uint8_t low = rest[rest_byte(column, k)];
  if (matrix.element == Element::kBf16) {
    const uint16_t flags = reinterpret_cast<const uint16_t*>(rest + 512)[column % kPanelWidth * 2 + k % 2];
    const int flag = flags >> (k % kInnerStep / 2) & 1;
    return static_cast<uint16_t>(table[code | flag << 4] | low);
  }
  const uint8_t byte = rest[512 + code_byte(matrix, column, k) % kCodeTileBytes];
  const int nibble = k / 4 % 2 == 1 ? byte >> 4 : byte & 15;
  return static_cast<uint16_t>(table[code | (nibble & 8) << 1] | (nibble & 7) << 8 | low);
}

void unpack_column(const PackedMatrix& matrix, Reading reading, int64_t column, std::span<float> out) {
  if (reading == Reading::kBsfpDraft || reading == Reading::kBsfpDraftA16) {
    const auto& magnitudes = reading == Reading::kBsfpDraft ? kDraftMagnitudes : kPaperMagnitudes;
    for (int64_t k = 0; k < matrix.k; ++k) {
      out[static_cast<size_t>(k)] = draft_value(matrix, magnitudes, column, k);
    }
    return;
  }
  std::vector<uint16_t> panel(static_cast<size_t>(matrix.k * kPanelWidth));
  const auto index = [&](int64_t k) {
    return static_cast<size_t>(k / 16 * 256 + position(matrix.element, column, k));
  };
  for (int64_t k = 0; k < matrix.k; ++k) panel[index(k)] = full_bits(matrix, column, k);
  apply_escaped_weights(matrix, kEscaped, column / kPanelWidth, panel);
  for (int64_t k = 0; k < matrix.k; ++k) {
    const uint16_t bits = panel[index(k)];
    out[static_cast<size_t>(k)] =
        matrix.element == Element::kBf16 ? to_float(BFloat16{bits}) : to_float(Float16{bits});
  }
}

int64_t bytes_read(const PackedMatrix& matrix, Reading reading) {
  const auto size = [&](int plane) { return static_cast<int64_t>(matrix.plane(plane).size()); };
  if (reading != Reading::kBsfpFull) return size(0) + size(1);
  return size(0) + size(2) + size(3) + escaped_weight_bytes(matrix, kEscaped);
}

}  // namespace

void unpack_bsfp_levels(const PackedMatrix& matrix, int64_t panel, float* out) {
  for (int64_t k = 0; k < matrix.k; ++k) {
    for (int64_t i = 0; i < kPanelWidth; ++i) {
      out[k * kPanelWidth + i] = draft_value(matrix, kPaperMagnitudes, panel * kPanelWidth + i, k);
    }
  }
}

const FormatOperations& bsfp_operations() {
  static constexpr FormatOperations kOperations = {allocate, pack_panel,    finish,
                                                   validate, unpack_column, bytes_read};
  return kOperations;
}

}  // namespace verbatim
