#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/matrix.h"
#include "base/thread_team.h"
#include "formats/packed_matrix.h"

namespace verbatim {

/// The weights of a linear layer: one matrix in one or more stores, each in another format for other
/// readings.
struct LinearWeight {
  int64_t columns = 0;               ///< the number of outputs, without padding
  int64_t k = 0;                     ///< the number of inputs, without padding
  std::vector<PackedMatrix> stores;  ///< at least one, of different formats
  int64_t wide_inputs = 0;  ///< `int4-w4a4`: the number of last inputs with eight-bit activations (Atom)

  int64_t padded_columns() const { return round_up(columns, kPanelWidth); }
  int64_t padded_k() const { return round_up(k, kInnerStep); }
  /// The store of a format, or null.
  const PackedMatrix* find(Format format) const;
  /// The reading that is used for a wanted reading: for kFull the most exact one that the stores offer, for
  /// kDraft draft_reading(), any other is returned as it is. Throws Error(kUsage) if there is no store for
  /// it.
  Reading resolve(Reading reading) const;
  /// The store that a reading reads. Throws as resolve() does.
  const PackedMatrix& store(Reading reading) const;
};

/// The reading of a weight's stores that drafts best: of the store that holds the model's own codes of four
/// bits if there is one, else of the first in an order from the closest to the text to the farthest. Nothing
/// if no store has a reading to draft with.
std::optional<Reading> draft_reading(const LinearWeight& weight);

/// A view of the first `columns` columns of a weight, rounded up to whole panels, in all of its stores. It
/// must not outlive the weight.
LinearWeight first_columns(const LinearWeight& weight, int64_t columns);

/// The buffers of linear(), for activations in the precision of a reading and for unpacked weights. They grow
/// to the largest product and are kept, so that a pass does not allocate.
struct LinearWorkspace {
  Buffer<BFloat16> bf16;   ///< [rows][bf16_stride(k)]
  Buffer<BFloat16> tiled;  ///< activations as tiles, for many rows: see TileProduct::tiled
  Buffer<float> widened;   ///< activations for few rows: see TileProduct::widened
  Buffer<int8_t> codes;    ///< [rows][k + room between rows]
  Buffer<float> scales;    ///< [rows][k / 32]
  Buffer<int32_t> sums;    ///< [rows][k / 32]
  Buffer<int16_t> words;   ///< [rows][k + room between rows]: both bytes joined, where kernels multiply words
  Buffer<float> products;  ///< [member][...]: sums of a block
  int64_t products_stride = 0;            ///< the number of elements of `products` for each member
  Buffer<uint16_t> unpacked;              ///< [member][...]: unpacked weights
  Buffer<float> transposed;               ///< [k][16]
  Buffer<float> rounded;                  ///< [rows][k]: activations in F16, for `bsfp-draft-a16` alone
  std::vector<TwoByteRow> two_byte_rows;  ///< `k-quants`, `q8_0`: the rows, in the buffers of numbers
  int64_t unpacked_stride = 0;            ///< the number of elements of `unpacked` for each member

  /// Makes room for `rows` rows of up to k inputs and a team of `members`.
  void reserve(int64_t rows, int64_t k, int members);
};

/// Multiplies: y = x · weightᵀ in the given reading. x is [rows][padded k] and zero beyond k; y is
/// [rows][padded columns]. Every row of y depends on its row of x alone, bit for bit, whatever the number of
/// rows or threads. The full reading of a lossless format (is_exact()) gives the bits that `bf16` or `f16`
/// gives; that of `q8_0`, where it is not in integers, gives those of `int8-w8a16` for the same
/// codes, and that of `k-quants` the same bits on every machine.
void linear(const LinearWeight& weight, Reading reading, Matrix<const float> x, Matrix<float> y,
            LinearWorkspace& workspace, ThreadTeam& team);

}  // namespace verbatim
