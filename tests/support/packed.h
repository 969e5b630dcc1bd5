#pragma once

#include <span>
#include <vector>

#include "base/thread_team.h"
#include "formats/pack_linear.h"

namespace verbatim::test {

/// The rows of a matrix that lies in memory, [columns][k].
MatrixRows rows_of(std::span<const float> weights, int64_t k);

/// weights[columns][k] in the given formats, packed by two threads. `weights` need only live for the call.
LinearWeight pack(int64_t columns, int64_t k, std::span<const float> weights, std::vector<Format> formats,
                  Element element = Element::kBf16);
/// The same in one format, as the bare store.
PackedMatrix pack_store(int64_t columns, int64_t k, std::span<const float> weights, Format format,
                        Element element = Element::kBf16);

/// What a reading takes an output column's weights to be: padded k floats.
std::vector<float> unpacked_column(const PackedMatrix& matrix, Reading reading, int64_t column);

/// A store of its own with the same bytes.
PackedMatrix copy_of(const PackedMatrix& matrix);

/// Whether two stores hold the same bytes in every plane.
bool same_bytes(const PackedMatrix& a, const PackedMatrix& b);

/// y = x · weightᵀ, [rows][padded columns]; x is [rows][padded k]. The places of y start as NaN.
std::vector<float> multiply(const LinearWeight& weight, Reading reading, const float* x, int64_t rows,
                            ThreadTeam& team, LinearWorkspace& workspace);

/// Normally distributed rows of activations, [rows][padded k], zero from k on.
std::vector<float> random_inputs(int64_t rows, int64_t k, uint32_t seed);

}  // namespace verbatim::test
