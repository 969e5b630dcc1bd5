#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/matrix.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

constexpr int64_t kQueryRows = 32;

/// The positions first .. end - 1 that a row sees.
struct Visible {
  int64_t first;
  int64_t end;
};

Visible visible_positions(const AttentionBlock& block, int64_t row) {
  const int64_t position = block.positions[row];
  const int64_t first = block.window > 0 ? std::max<int64_t>(0, position - block.window + 1) : 0;
  return {first, position + 1};
}

}  // namespace

void AttentionScratch::reserve(int64_t query_rows, int64_t width) {
  scores.reserve(static_cast<size_t>(query_rows * kAttentionChunk));
  probabilities.reserve(static_cast<size_t>(query_rows * kAttentionChunk));
  sums.reserve(static_cast<size_t>(query_rows * width));
  states.reserve(static_cast<size_t>(query_rows));
}

int64_t attention_rows_per_block(int64_t group) {
  return std::max<int64_t>(1, kQueryRows / group);
}

void begin_attention(const AttentionBlock& block, AttentionScratch& scratch) {
  const int64_t query_rows = block.rows * block.group;
  scratch.reserve(query_rows, block.width);
  std::memset(scratch.sums.data(), 0, static_cast<size_t>(query_rows * block.width) * sizeof(float));
  for (int64_t q = 0; q < query_rows; ++q) {
    scratch.states[static_cast<size_t>(q)] = {-std::numeric_limits<float>::infinity(), 0.0f};
  }
}

void attend_to_chunks(const AttentionBlock& block, int64_t first_row, int64_t rows, int64_t first_chunk,
                      int64_t end_chunk, AttentionScratch& scratch) {
  const KernelTable& kernel = kernels();
  const int64_t width = block.width;
  const int64_t first_query = first_row * block.group;
  const int64_t queries = rows * block.group;
  float* const scores = scratch.scores.data() + first_query * kAttentionChunk;
  BFloat16* const probabilities = scratch.probabilities.data() + first_query * kAttentionChunk;
  float* const sums = scratch.sums.data() + first_query * width;
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t end = 0;
  for (int64_t r = first_row; r < first_row + rows; ++r) {
    const Visible visible = visible_positions(block, r);
    first = std::min(first, visible.first);
    end = std::max(end, visible.end);
  }
  first_chunk = std::max(first_chunk, first / kAttentionChunk);
  end_chunk = std::min(end_chunk, ceil_div(end, kAttentionChunk));

  for (int64_t chunk = first_chunk; chunk < end_chunk; ++chunk) {
    const int64_t begin = chunk * kAttentionChunk;
    const int64_t extent = std::min(kAttentionChunk, round_up(end - begin, kInnerStep));
    kernel.panels_bf16({.a = block.queries + first_query * width,
                        .a_stride = width,
                        .rows = queries,
                        .panels = block.cache.keys + chunk * block.cache.chunk_stride,
                        .panel_stride = width * kPanelWidth,
                        .panel_count = extent / kPanelWidth,
                        .k = width,
                        .c = scores,
                        .c_stride = kAttentionChunk,
                        .accumulate = false});
    for (int64_t q = 0; q < queries; ++q) {
      const Visible visible = visible_positions(block, first_row + q / block.group);
      BFloat16* const weights = probabilities + q * kAttentionChunk;
      const int64_t from = std::max<int64_t>(visible.first - begin, 0);
      const int64_t to = std::min(visible.end - begin, extent);
      if (from >= to) {  // the chunk is here for other rows: adding zeros leaves this one as it is
        std::memset(weights, 0, static_cast<size_t>(extent) * sizeof(BFloat16));
        continue;
      }
      const float correction =
          kernel.softmax_chunk(scores + q * kAttentionChunk, extent, from, to, block.scale,
                               &scratch.states[static_cast<size_t>(first_query + q)], weights);
      kernel.scale(sums + q * width, width, correction);
    }
    kernel.panels_bf16({.a = probabilities,
                        .a_stride = kAttentionChunk,
                        .rows = queries,
                        .panels = block.cache.values + chunk * block.cache.chunk_stride,
                        .panel_stride = kAttentionChunk * kPanelWidth,
                        .panel_count = width / kPanelWidth,
                        .k = extent,
                        .c = sums,
                        .c_stride = width,
                        .accumulate = true});
  }
}

void end_attention(const AttentionBlock& block, AttentionScratch& scratch) {
  const int64_t width = block.width;
  for (int64_t q = 0; q < block.rows * block.group; ++q) {
    float* const sums = scratch.sums.data() + q * width;
    kernels().scale(sums, width, 1.0f / scratch.states[static_cast<size_t>(q)].sum);
    float* const out = block.out + q / block.group * block.out_stride + q % block.group * block.head_dim;
    std::memcpy(out, sums, static_cast<size_t>(block.head_dim) * sizeof(float));
  }
}

void attend(const AttentionBlock& block, AttentionScratch& scratch) {
  begin_attention(block, scratch);
  attend_to_chunks(block, 0, block.rows, 0, std::numeric_limits<int64_t>::max(), scratch);
  end_attention(block, scratch);
}

}  // namespace verbatim
