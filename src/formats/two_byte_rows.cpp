#include "formats/two_byte_rows.h"

#include <cstring>

#include "formats/k_quants.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

/// The numbers beside the codes of a row, for each block: a step, and sums of 16 and of 32 activations.
constexpr int64_t kFloatsOfBlock = 1 + kBlockInputs / 16 + kBlockInputs / 32;
/// The sums of 16 codes, of the upper and of the lower bytes.
constexpr int64_t kSumsOfBlock = 2 * kBlockInputs / 16;

/// Exchanges the second and the third of every four codes.
void put_in_quad_order(int8_t* codes, int64_t count) {
  static_assert(kQuadOrder[1] == 2 && kQuadOrder[2] == 1);
  for (int64_t i = 0; i < count; i += 4) {
    uint32_t quad;
    std::memcpy(&quad, codes + i, sizeof quad);
    quad = (quad & 0xff0000ffu) | (quad >> 8 & 0xff00u) | (quad << 8 & 0xff0000u);
    std::memcpy(codes + i, &quad, sizeof quad);
  }
}

/// Joins the bytes of a row, which still lie in the order of k, to TwoByteRow::words. `bytes_in_quad_order`
/// says whether the bytes are put into kQuadOrder afterwards.
void join_words(const TwoByteRow& row, int64_t count, bool bytes_in_quad_order) {
  for (int64_t i = 0; i < count; ++i) row.words[i] = static_cast<int16_t>(256 * row.upper[i] + row.lower[i]);
  if (bytes_in_quad_order) return;
  for (int64_t i = 0; i < count; i += 4) {
    uint64_t quad;
    std::memcpy(&quad, row.words + i, sizeof quad);
    quad = (quad & 0xffff00000000ffffu) | (quad >> 16 & 0xffff0000u) | (quad << 16 & 0xffff00000000u);
    std::memcpy(row.words + i, &quad, sizeof quad);
  }
}

}  // namespace

int64_t two_byte_stride(int64_t k) {
  return 2 * blocks_of(k) * kBlockInputs + 64;
}

std::span<const TwoByteRow> to_two_bytes(Matrix<const float> x, const TwoByteOptions& options,
                                         LinearWorkspace& workspace, ThreadTeam& team) {
  const int64_t blocks = blocks_of(x.columns);
  const int64_t k = blocks * kBlockInputs;
  const int64_t stride = two_byte_stride(x.columns);
  const int64_t words_stride = k + 2 * kInnerStep;
  workspace.codes.reserve(static_cast<size_t>(x.rows * stride));
  workspace.scales.reserve(static_cast<size_t>(x.rows * blocks * kFloatsOfBlock));
  workspace.sums.reserve(static_cast<size_t>(x.rows * blocks * kSumsOfBlock));
  const bool words = !options.upper_alone && x.rows >= kernels().rows_in_words;
  if (words) workspace.words.reserve(static_cast<size_t>(x.rows * words_stride));
  workspace.two_byte_rows.resize(static_cast<size_t>(x.rows));
  const auto quantize = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int8_t* const codes = workspace.codes.data() + r * stride;
      float* const floats = workspace.scales.data() + r * blocks * kFloatsOfBlock;
      int32_t* const sums = workspace.sums.data() + r * blocks * kSumsOfBlock;
      TwoByteRow& row = workspace.two_byte_rows[static_cast<size_t>(r)];
      row = {.upper = codes,
             .lower = options.upper_alone ? nullptr : codes + k,
             .steps = floats,
             .upper_sums = sums,
             .lower_sums = options.upper_alone ? nullptr : sums + blocks * kSumsOfBlock / 2,
             .of_16 = floats + blocks,
             .of_32 = floats + blocks + k / 16,
             .words = words ? workspace.words.data() + r * words_stride : nullptr};
      kernels().quantize_two_bytes(x.row(r), x.columns, row);
      if (words) join_words(row, k, options.in_quad_order);
      if (options.in_quad_order) put_in_quad_order(codes, options.upper_alone ? k : 2 * k);
    }
  };
  constexpr int64_t kRowsToShareQuantizing = 8;
  if (x.rows < kRowsToShareQuantizing) {
    quantize(0, x.rows);
  } else {
    team.split(x.rows, quantize);
  }
  return workspace.two_byte_rows;
}

}  // namespace verbatim
