#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "formats/format.h"
#include "kernels/kernel_table.h"

namespace verbatim {

/// A run of bytes of a packed matrix: memory of its own, or a piece of a mapped file that outlives it.
class Plane {
 public:
  Plane() = default;
  /// Makes a plane that owns its memory, filled with zeros.
  explicit Plane(size_t bytes) : owned_(bytes), data_(owned_.data()), size_(bytes) {}
  /// Makes a plane of memory that it does not own. It must never be written to.
  explicit Plane(std::span<const std::byte> bytes)
      : data_(const_cast<std::byte*>(bytes.data())), size_(bytes.size()) {}
  Plane(Plane&& other) noexcept = default;
  Plane& operator=(Plane&& other) noexcept = default;

  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  AlignedBuffer owned_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// The type of the weights that a `bsfp` matrix was packed from.
enum class Element : uint8_t { kBf16, kF16 };

/// A weight matrix in one format, as panels of 16 columns. The contents of its planes depend on the format.
struct PackedMatrix {
  Format format = Format::kBf16;
  Element element = Element::kBf16;
  /// Whether the checkpoint has the matrix in this format, so that the store is lossless although the format
  /// is not: `mxfp4` of a model in MXFP4, `int4` of one that is quantized so.
  bool own = false;
  int64_t columns = 0;  ///< the number of outputs, padded to a multiple of 16
  int64_t k = 0;        ///< the number of inputs, padded to a multiple of 32
  std::vector<Plane> planes;

  int64_t panels() const { return columns / kPanelWidth; }
  /// The number of tiles, of 32 × 16 weights, in a panel.
  int64_t tiles() const { return k / kInnerStep; }
  const Plane& plane(int index) const { return planes[static_cast<size_t>(index)]; }
  /// The bytes of all planes together.
  int64_t bytes() const;
};

/// A block of 256 weights of a column in `k-quants`, of any shape (BlockLayout).
struct KQuantBlock {
  Float16 scale;
  Float16 offset;
  int8_t scales[16];
  uint8_t offsets[16];
  uint8_t codes[kBlockInputs];
};

/// The weights of one panel of a matrix, as pack_panel() gets them.
struct PanelSource {
  int64_t panel = 0;
  int64_t column_count = 0;            ///< up to 16
  std::span<const float> weights;      ///< [column_count][inputs], inputs ≤ k
  std::span<const float> sensitivity;  ///< [column_count][inputs]: the sensitivity of each weight; or empty
  std::span<const int8_t> codes;    ///< for `q8_0`: the weights' own codes, [column_count][inputs]; or empty
  std::span<const Float16> scales;  ///< with codes: their scales, [column_count][inputs / 32, rounded up]
  bool codes_of_int4 = false;       ///< whether `int4` and `int4-asymmetric` keep the codes (pack_linear.h)
  std::span<const KQuantBlock> blocks;  ///< for `k-quants`: [column_count][inputs / 256]; or empty

  int64_t inputs() const { return static_cast<int64_t>(weights.size()) / column_count; }
  /// The weight at (column, k), or zero in the padding.
  float at(int64_t column, int64_t k) const {
    return column < column_count && k < inputs() ? weights[static_cast<size_t>(column * inputs() + k)] : 0.0f;
  }
};

/// The properties of the whole matrix that must be known before its first panel is packed.
struct MatrixStatistics {
  bool finite = true;  ///< whether there is no NaN and no infinity
  /// For `bsfp`, a histogram of a sample of the finite weights by magnitude_bin().
  std::vector<uint64_t> magnitudes;
  /// For `squeeze3` and `squeeze4`: weights of larger magnitude belong to the sparse part.
  float outlier_magnitude = std::numeric_limits<float>::infinity();
  /// For `squeeze3` and `squeeze4`: weights of higher sensitivity belong to the sparse part.
  float high_sensitivity = std::numeric_limits<float>::infinity();
  /// For `k-quants`: the shape of each panel's blocks; empty for weights that have no blocks of their own.
  std::vector<BlockShape> shapes;
};

/// The number of bins of MatrixStatistics::magnitudes.
inline constexpr size_t kMagnitudeBins = 2048;
/// The bin of a weight: its exponent field and the upper three bits of its mantissa, as a float.
inline size_t magnitude_bin(float weight) {
  return std::bit_cast<uint32_t>(weight) >> 20 & (kMagnitudeBins - 1);
}

/// The entries of one panel for planes whose length is known only when all panels are packed.
using PanelTail = std::vector<std::byte>;

/// The operations of a format. A matrix is packed by allocate(), then pack_panel() for every panel (from
/// several threads, each panel with a tail of its own), then finish(). A matrix in a mapped file is checked
/// by validate().
struct FormatOperations {
  /// Makes a matrix with all planes whose length is known beforehand.
  PackedMatrix (*allocate)(int64_t columns, int64_t k, Element element, const MatrixStatistics& statistics);
  /// Packs one panel into the planes, and writes entries for the other planes to `tail`.
  void (*pack_panel)(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics& statistics,
                     PanelTail& tail);
  /// Makes the other planes from the tails of all panels. Null in formats that have no such planes.
  void (*finish)(PackedMatrix& matrix, std::span<const PanelTail> tails);
  /// Checks a matrix whose planes may hold anything. Throws Error(kBadInput) unless the planes have the right
  /// sizes and no number in them leads outside a plane.
  void (*validate)(const PackedMatrix& matrix);
  /// Writes the weights of one output column to `out`, exactly as a reading of the format sees them. It is
  /// the reference that the kernels are tested against.
  void (*unpack_column)(const PackedMatrix& matrix, Reading reading, int64_t column, std::span<float> out);
  /// The bytes of weights that one product in the given reading reads.
  int64_t (*bytes_read)(const PackedMatrix& matrix, Reading reading);
};

/// The operations of a format.
const FormatOperations& operations(Format format);

/// Checks that a plane exists and has exactly `bytes` bytes; throws Error(kBadInput) otherwise. A format's
/// validate() uses it.
void check_plane(const PackedMatrix& matrix, int index, size_t bytes);
/// Makes a matrix of columns × k, padded, without planes. A format's allocate() uses it.
PackedMatrix make_matrix(Format format, int64_t columns, int64_t k);

}  // namespace verbatim
