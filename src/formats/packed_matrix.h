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
  /// Owned and zero.
  explicit Plane(size_t bytes) : owned_(bytes), data_(owned_.data()), size_(bytes) {}
  /// Borrowed; never written to.
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

/// What the weights of a `bsfp` matrix were.
enum class Element : uint8_t { kBf16, kF16 };

/// A weight matrix in one format, as panels of 16 columns. What the planes hold is the format's business.
struct PackedMatrix {
  Format format = Format::kBf16;
  Element element = Element::kBf16;
  int64_t columns = 0;  ///< outputs, padded to a multiple of 16
  int64_t k = 0;        ///< inputs, padded to a multiple of 32
  std::vector<Plane> planes;

  int64_t panels() const { return columns / kPanelWidth; }
  /// Tiles of 32 × 16 weights in a panel.
  int64_t tiles() const { return k / kInnerStep; }
  const Plane& plane(int index) const { return planes[static_cast<size_t>(index)]; }
  /// All planes together.
  int64_t bytes() const;
};

/// Weights of one panel of a matrix on their way into a format.
struct PanelSource {
  int64_t panel = 0;
  int64_t column_count = 0;            ///< up to 16
  std::span<const float> weights;      ///< [column_count][inputs], inputs ≤ k
  std::span<const float> sensitivity;  ///< likewise, or empty: what the loss thinks of each weight

  int64_t inputs() const { return static_cast<int64_t>(weights.size()) / column_count; }
  /// The weight, and zero in the padding.
  float at(int64_t column, int64_t k) const {
    return column < column_count && k < inputs() ? weights[static_cast<size_t>(column * inputs() + k)] : 0.0f;
  }
};

/// What depends on the whole matrix and must be known before its first panel is packed.
struct MatrixStatistics {
  bool finite = true;  ///< no NaN and no infinity
  /// `bsfp`: how many finite weights have which exponent field and upper three mantissa bits as floats, of a
  /// sample.
  std::vector<uint64_t> magnitudes;
  float outlier_magnitude = std::numeric_limits<float>::infinity();  ///< `squeeze`: larger ones are sparse
  float high_sensitivity = std::numeric_limits<float>::infinity();   ///< `squeeze`: likewise sensitivities
};

/// The places of MatrixStatistics::magnitudes.
inline constexpr size_t kMagnitudeBins = 2048;
inline size_t magnitude_bin(float weight) {
  return std::bit_cast<uint32_t>(weight) >> 20 & (kMagnitudeBins - 1);
}

/// The parts of a matrix whose length is known only once a panel is packed, one per panel.
using PanelTail = std::vector<std::byte>;

/// The operations that every format has. A matrix is packed by allocate(), pack_panel() on every panel (from
/// several threads, each with a tail of its own) and finish(). A mapped one is checked by validate().
struct FormatOperations {
  PackedMatrix (*allocate)(int64_t columns, int64_t k, Element element, const MatrixStatistics& statistics);
  void (*pack_panel)(PackedMatrix& matrix, const PanelSource& source, const MatrixStatistics& statistics,
                     PanelTail& tail);
  /// Gathers the tails into the matrix. Null where there are none.
  void (*finish)(PackedMatrix& matrix, std::span<const PanelTail> tails);
  /// Throws Error(kBadInput) unless the planes are of the right sizes and nothing in them leads outside them.
  void (*validate)(const PackedMatrix& matrix);
  /// The reference: what a reading of the format takes the weights of one output column to be, exactly.
  void (*unpack_column)(const PackedMatrix& matrix, Reading reading, int64_t column, std::span<float> out);
  /// Bytes that one product in the given reading needs.
  int64_t (*bytes_read)(const PackedMatrix& matrix, Reading reading);
};

const FormatOperations& operations(Format format);

/// For validate(): the plane exists and has exactly so many bytes.
void check_plane(const PackedMatrix& matrix, int index, size_t bytes);
/// For allocate(): padded sizes and owned planes of the given numbers of bytes.
PackedMatrix make_matrix(Format format, int64_t columns, int64_t k);

}  // namespace verbatim
