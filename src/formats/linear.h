#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <variant>

#include "base/matrix.h"
#include "base/thread_team.h"
#include "formats/mxfp4.h"
#include "formats/panels.h"
#include "formats/reading.h"

namespace verbatim {

/// A linear layer's weights in every format that its readings need.
struct LinearWeight {
  int64_t columns = 0;  ///< outputs, as the model has them
  int64_t k = 0;        ///< inputs, as the model has them
  std::variant<PanelMatrix<BFloat16>, PanelMatrix<Float16>, PanelMatrix<float>> full;
  std::optional<Mxfp4Matrix> mxfp4;

  int64_t padded_columns() const { return round_up(columns, kPanelWidth); }
  int64_t padded_k() const { return round_up(k, kInnerStep); }
};

enum class FullFormat { kBf16, kF16, kF32 };

/// What to pack: the format that keeps the checkpoint's weights exactly, and which drafts beside it.
struct PackOptions {
  FullFormat full = FullFormat::kBf16;
  bool mxfp4 = false;
};

/// Fills `row` (k floats) with the weights of one output column. Called from several threads at once.
using WeightRows = std::function<void(int64_t column, std::span<float> row)>;

struct PackResult {
  LinearWeight weight;
  bool finite = true;  ///< no NaN and no infinity among the weights
};

/// Packs a matrix of columns × k, reading each of its rows once, panels spread over the team.
PackResult pack_linear(int64_t columns, int64_t k, const WeightRows& rows, const PackOptions& options,
                       ThreadTeam& team);

/// Space for activations in the precision a reading wants; grows as needed, so that a pass does not allocate.
struct LinearWorkspace {
  Buffer<BFloat16> bf16;
  Buffer<int8_t> codes;
  Buffer<float> scales;
  Buffer<int32_t> sums;

  /// Makes room for `rows` rows of up to k inputs.
  void reserve(int64_t rows, int64_t k);
};

/// y = x · weightᵀ in the given reading. x is [rows][padded k] and zero beyond k; y is [rows][padded
/// columns]. Every row of y depends on its row of x alone, bit for bit, whatever the number of rows or
/// threads.
void linear(const LinearWeight& weight, Reading reading, Matrix<const float> x, Matrix<float> y,
            LinearWorkspace& workspace, ThreadTeam& team);

}  // namespace verbatim
