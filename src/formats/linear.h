#pragma once

#include <cstdint>
#include <vector>

#include "base/matrix.h"
#include "base/thread_team.h"
#include "formats/packed_matrix.h"

namespace verbatim {

/// A linear layer's weights: the same matrix in one format or several, each for readings of its own.
struct LinearWeight {
  int64_t columns = 0;               ///< outputs, as the model has them
  int64_t k = 0;                     ///< inputs, as the model has them
  std::vector<PackedMatrix> stores;  ///< at least one, of different formats
  int64_t wide_inputs = 0;  ///< `int4-w4a4`: activations of so many last inputs have eight bits (Atom)

  int64_t padded_columns() const { return round_up(columns, kPanelWidth); }
  int64_t padded_k() const { return round_up(k, kInnerStep); }
  /// The store of a format, or null.
  const PackedMatrix* find(Format format) const;
  /// What a reading means for this weight: kFull is the most exact reading that the stores offer, any other
  /// is itself. Throws Error(kUsage) when the store it needs is not there.
  Reading resolve(Reading reading) const;
  /// The store that a reading reads. Throws as resolve() does.
  const PackedMatrix& store(Reading reading) const;
};

/// The first columns of a weight, rounded up to whole panels, in all its stores: a view that must not outlive
/// the weight.
LinearWeight first_columns(const LinearWeight& weight, int64_t columns);

/// Space for activations in the precision a reading wants and for unpacked weights; grows as needed, so that
/// a pass does not allocate.
struct LinearWorkspace {
  Buffer<BFloat16> bf16;        ///< [rows][bf16_stride(k)]
  Buffer<BFloat16> tiled;       ///< many rows, see TileProduct::tiled; grows where it is filled
  Buffer<int8_t> codes;         ///< [rows][k + room between rows]
  Buffer<float> scales;         ///< [rows][k / 32]
  Buffer<int32_t> sums;         ///< [rows][k / 32]
  Buffer<float> products;       ///< [member][...]: sums of a block
  int64_t products_stride = 0;  ///< elements of `products` that are each member's
  Buffer<uint16_t> unpacked;    ///< [member][...]
  Buffer<float> transposed;     ///< [k][16]
  int64_t unpacked_stride = 0;  ///< elements of `unpacked` that are each member's

  /// Makes room for `rows` rows of up to k inputs and a team of `members`.
  void reserve(int64_t rows, int64_t k, int members);
};

/// y = x · weightᵀ in the given reading. x is [rows][padded k] and zero beyond k; y is [rows][padded
/// columns]. Every row of y depends on its row of x alone, bit for bit, whatever the number of rows or
/// threads. The readings that are exact (is_exact()) give the very bits that the plain format gives.
void linear(const LinearWeight& weight, Reading reading, Matrix<const float> x, Matrix<float> y,
            LinearWorkspace& workspace, ThreadTeam& team);

}  // namespace verbatim
