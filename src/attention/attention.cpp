#include "attention/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/cpu.h"
#include "base/matrix.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

constexpr int64_t kQueryRows = 32;

/// A range of positions: first .. end - 1.
struct Range {
  int64_t first;
  int64_t end;
};

/// The range of positions that a row sees, without sinks and selected positions.
Range visible_positions(const AttentionBlock& block, int64_t row) {
  const int64_t position = block.positions[row];
  int64_t first = block.view.first;
  if (block.window > 0) first = std::max(first, position - block.window + 1);
  return {first, position + 1};
}

/// Rows of a block that attend to a chunk together, because all of them read it as codes, or all as numbers.
struct Step {
  const HeadCache& cache;
  int64_t chunk;
  bool coded;
  int64_t first_row;
  int64_t rows;
  int64_t extent;     ///< positions of the chunk that are looked at
  int64_t next = -1;  ///< the chunk that is looked at after this one, stored the same way; -1: none
};

/// How a chunk of codes is prefetched while the rows attend to the chunk before it: beside the two products
/// alone or, where tiles make these short, spread over the parts of attention by the rough time of each part,
/// as measured with AMX and heads of 128.
class FetchPlan {
 public:
  /// `bytes` is the size of one plane of codes, with keys and values.
  FetchPlan(int64_t queries, int64_t bytes)
      // Beside the parts of a single query, prefetching takes longer than it saves.
      : queries_(queries == 1 || !kernels().code_product_in_tiles ? 0 : queries), bytes_(bytes) {}

  /// The bytes that are fetched while the queries are quantized, before each of the two products.
  int64_t quantizing() const { return part(kQuantize * queries_); }
  /// The bytes that are fetched during each of the two products.
  int64_t product() const { return part(kProduct); }
  /// The bytes that are fetched while the probabilities of one query are computed.
  int64_t softmax() const { return queries_ == 0 ? 0 : part(kSoftmax); }
  /// The bytes that are fetched before the first probabilities are computed.
  int64_t before_softmax() const { return quantizing() + product(); }
  /// The bytes that are fetched before the product with values begins.
  int64_t before_values() const { return before_softmax() + softmax() * queries_; }

 private:
  static constexpr int64_t kProduct = 12;  // with keys or with values, for any few queries
  static constexpr int64_t kQuantize = 1;  // of a query before either
  static constexpr int64_t kSoftmax = 2;   // of a query

  int64_t part(int64_t work) const {
    return bytes_ * work / (2 * kProduct + (2 * kQuantize + kSoftmax) * queries_);
  }

  int64_t queries_;
  int64_t bytes_;
};

/// Attention of one block: the loops over queries around the two products.
class Attending {
 public:
  Attending(const AttentionBlock& block, AttentionScratch& scratch) : block_(block), scratch_(scratch) {}

  /// Makes rows attend to a chunk; `visible(row)` is the Range within the chunk that a row sees.
  template <typename Visible>
  void take(const Step& step, Visible&& visible) {
    if (step.cache.f32_keys != nullptr) {  // probabilities take the places of their scores
      take_rows(step, block_.f32_queries, scratch_.scores.data(), visible);
    } else {
      take_rows(step, block_.queries, scratch_.probabilities.data(), visible);
    }
  }

  /// Takes the scores of a chunk into the running softmax of a query: see KernelTable::softmax_chunk.
  template <typename Number>
  float softmax(float* scores, int64_t extent, const Range& range, SoftmaxState& state,
                Number* weights) const {
    float scale = block_.scale;
    if (block_.cap > 0.0f) {
      kernel_.soft_cap(scores, extent, scale, block_.cap);
      scale = 1.0f;
    }
    if constexpr (std::is_same_v<Number, float>) {
      return kernel_.softmax_chunk_f32(scores, extent, range.first, range.end, scale, &state, weights);
    } else {
      return kernel_.softmax_chunk(scores, extent, range.first, range.end, scale, &state, weights);
    }
  }

  /// Computes the scores of a chunk of panels for all rows, and calls see(query, range) for each query with
  /// the range of the chunk that its row sees.
  template <typename See>
  void look(int64_t chunk, int64_t extent, See&& see) {
    score({block_.cache, chunk, false, 0, block_.rows, extent}, block_.rows * block_.group, block_.queries,
          scratch_.scores.data());
    const int64_t begin = chunk * kAttentionChunk;
    for (int64_t q = 0; q < block_.rows * block_.group; ++q) {
      const Range visible = visible_positions(block_, q / block_.group);
      const Range range{std::max<int64_t>(visible.first - begin, 0), std::min(visible.end - begin, extent)};
      if (range.first < range.end) see(q, range);
    }
  }

 private:
  /// Makes rows attend to a chunk, with the block's queries and room for its probabilities in the type in
  /// which the products of this cache read them.
  template <typename Number, typename Visible>
  void take_rows(const Step& step, const Number* block_queries, Number* block_probabilities,
                 Visible&& visible) {
    const int64_t first_query = step.first_row * block_.group;
    const int64_t queries = step.rows * block_.group;
    float* const scores = scratch_.scores.data() + first_query * kAttentionChunk;
    Number* const probabilities = block_probabilities + first_query * kAttentionChunk;
    float* const sums = scratch_.sums.data() + first_query * block_.width;
    score(step, queries, block_queries + first_query * block_.width, scores);
    const SoftmaxAhead ahead = softmax_ahead(step, queries);
    for (int64_t q = 0; q < queries; ++q) {
      ahead.fetch(q);
      const Range range = visible(step.first_row + q / block_.group);
      Number* const weights = probabilities + q * kAttentionChunk;
      if (range.first >=
          range.end) {  // the chunk is here for other rows: adding zeros leaves this one as it is
        std::memset(weights, 0, static_cast<size_t>(step.extent) * sizeof(Number));
        continue;
      }
      const float correction = softmax(scores + q * kAttentionChunk, step.extent, range,
                                       scratch_.states[static_cast<size_t>(first_query + q)], weights);
      if (correction != 1.0f) kernel_.scale(sums + q * block_.width, block_.width, correction);
    }
    add_values(step, queries, probabilities, sums);
  }

  /// Computes scores = queries · keys.
  void score(const Step& step, int64_t queries, const BFloat16* a, float* scores) {
    if (step.coded) {
      const CodedChunks& coded = step.cache.coded;
      if (step.next >= 0) prefetch_scales(coded, step.next);
      coded_product(a, block_.width, queries, coded.keys(step.chunk), scores, kAttentionChunk, false,
                    scratch_.codes, codes_ahead(step, queries, 0));
      return;
    }
    const int64_t width = step.cache.width;
    const PanelChunk chunk = step.cache.chunk(step.chunk);
    const Panels keys{chunk.keys, chunk.f16_keys, width * kPanelWidth, panels_ahead(step, queries, 0)};
    panels({queries, width, step.extent / kPanelWidth}, a, block_.width, keys, scores, kAttentionChunk,
           false);
  }

  /// Computes sums += probabilities · values.
  void add_values(const Step& step, int64_t queries, const BFloat16* a, float* sums) {
    if (step.coded) {
      const CodedChunks& coded = step.cache.coded;
      coded_product(a, kAttentionChunk, queries, coded.values(step.chunk), sums, block_.width, true,
                    scratch_.codes, codes_ahead(step, queries, 1));
      return;
    }
    const PanelChunk chunk = step.cache.chunk(step.chunk);
    const Panels values{chunk.values, chunk.f16_values, chunk.positions * kPanelWidth,
                        panels_ahead(step, queries, 1)};
    panels({queries, step.extent, step.cache.width / kPanelWidth}, a, kAttentionChunk, values, sums,
           block_.width, true);
  }

  /// Computes scores = queries · keys in F32.
  void score(const Step& step, int64_t queries, const float* a, float* scores) {
    const int64_t width = step.cache.width;
    kernel_.panels_f32({.a = a,
                        .a_stride = block_.width,
                        .rows = queries,
                        .panels = step.cache.chunk(step.chunk).f32_keys,
                        .panel_stride = width * kPanelWidth,
                        .panel_count = step.extent / kPanelWidth,
                        .k = width,
                        .c = scores,
                        .c_stride = kAttentionChunk,
                        .accumulate = false});
  }

  /// Computes sums += probabilities · values in F32.
  void add_values(const Step& step, int64_t queries, const float* a, float* sums) {
    kernel_.panels_f32({.a = a,
                        .a_stride = kAttentionChunk,
                        .rows = queries,
                        .panels = step.cache.chunk(step.chunk).f32_values,
                        .panel_stride = kAttentionChunk * kPanelWidth,
                        .panel_count = step.cache.width / kPanelWidth,
                        .k = step.extent,
                        .c = sums,
                        .c_stride = block_.width,
                        .accumulate = true});
  }

  /// The prefetch of the next chunk's keys and values, which take `bytes` each, from `position` on. For a
  /// single query it is in ascending order where CpuFeatures::one_stream holds.
  static FetchAhead ahead(const void* next, int64_t bytes, int64_t position, int64_t queries) {
    const auto* const from = static_cast<const char*>(next);
    if (queries == 1 && cpu_features().one_stream) return {from, 0, position};
    const auto blocks = static_cast<uint64_t>(2 * bytes / FetchAhead::kFetchBlock);
    if (!std::has_single_bit(blocks)) return {};
    return {from, std::countr_zero(blocks), position};
  }
  /// The prefetch of the next chunk of codes, from `position` on.
  static CodesAhead codes_from(const Step& step, int64_t position, int64_t queries) {
    if (step.next < 0) return {};
    const CodedChunks& coded = step.cache.coded;
    const int64_t bytes = coded.layout.code_bytes();
    CodesAhead fetched{ahead(coded.record(step.next), bytes, position, queries), {}};
    if (coded.lower != nullptr) {
      fetched.lower = ahead(coded.lower_record(step.next), bytes, position, queries);
    }
    return fetched;
  }
  /// The prefetch during the product with the keys of a chunk (half 0) or with its values (half 1).
  static CodesAhead codes_ahead(const Step& step, int64_t queries, int half) {
    const int64_t bytes = step.cache.coded.layout.code_bytes();
    const FetchPlan plan(queries, 2 * bytes);
    CodesAhead fetched = codes_from(step, half == 0 ? 0 : plan.before_values(), queries);
    fetched.before_products = plan.quantizing();
    fetched.codes.rate = fetched.lower.rate = ceil_div(plan.product() * FetchAhead::kEvenly, bytes);
    return fetched;
  }
  struct SoftmaxAhead {
    CodesAhead codes;
    int64_t bytes;  ///< for each query
    void fetch(int64_t query) const { codes.fetch(query * bytes, (query + 1) * bytes); }
  };
  static SoftmaxAhead softmax_ahead(const Step& step, int64_t queries) {
    if (!step.coded) return {};
    const FetchPlan plan(queries, 2 * step.cache.coded.layout.code_bytes());
    return {codes_from(step, plan.before_softmax(), queries), plan.softmax()};
  }
  static FetchAhead panels_ahead(const Step& step, int64_t queries, int half) {
    if (step.next < 0) return {};
    const PanelChunk next = step.cache.chunk(step.next);
    if (next.keys == nullptr) return {};
    // Behind a shorter chunk there may be no memory.
    if (next.positions != step.cache.chunk(step.chunk).positions) return {};
    const int64_t bytes = next.positions * step.cache.width * int64_t{sizeof(BFloat16)};
    return ahead(next.keys, bytes, half * bytes, queries);
  }

  struct Sizes {
    int64_t rows;
    int64_t k;
    int64_t panel_count;
  };
  struct Panels {
    const BFloat16* bf16;
    const Float16* f16;
    int64_t stride;
    FetchAhead ahead;
  };
  void panels(Sizes sizes, const BFloat16* a, int64_t a_stride, const Panels& from, float* c,
              int64_t c_stride, bool accumulate) {
    const auto multiply = [&](auto kernel, const auto* rows, int64_t stride, const auto* first) {
      kernel({.a = rows,
              .a_stride = stride,
              .rows = sizes.rows,
              .panels = first,
              .panel_stride = from.stride,
              .panel_count = sizes.panel_count,
              .k = sizes.k,
              .c = c,
              .c_stride = c_stride,
              .accumulate = accumulate,
              .ahead = from.ahead,
              .near = from.ahead.from == nullptr});
    };
    if (from.f16 == nullptr) {
      multiply(kernel_.panels_bf16, a, a_stride, from.bf16);
      return;
    }
    scratch_.floats.reserve(static_cast<size_t>(sizes.rows * sizes.k));
    float* const wide = scratch_.floats.data();
    for (int64_t r = 0; r < sizes.rows; ++r) {
      for (int64_t i = 0; i < sizes.k; ++i) wide[r * sizes.k + i] = to_float(a[r * a_stride + i]);
    }
    multiply(kernel_.panels_f16, wide, sizes.k, from.f16);
  }

  static void prefetch_scales(const CodedChunks& coded, int64_t chunk) {
    const uint8_t* const record = coded.record(chunk);
    const int64_t end = coded.layout.record_bytes();
    for (int64_t at = 2 * coded.layout.code_bytes(); at < end; at += 64) {
      __builtin_prefetch(record + at, 0, 2);
    }
  }

  const AttentionBlock& block_;
  AttentionScratch& scratch_;
  const KernelTable& kernel_ = kernels();
};

/// The range from the first to the last position that any of the rows sees, without sinks and selected
/// positions.
Range visible_positions(const AttentionBlock& block, int64_t first_row, int64_t rows) {
  Range all{std::numeric_limits<int64_t>::max(), 0};
  for (int64_t r = first_row; r < first_row + rows; ++r) {
    const Range visible = visible_positions(block, r);
    all = {std::min(all.first, visible.first), std::max(all.end, visible.end)};
  }
  return all;
}

/// Sets the states of all queries to those before the first position: a sink alone, or nothing.
void forget(const AttentionBlock& block, AttentionScratch& scratch) {
  for (int64_t q = 0; q < block.rows * block.group; ++q) {
    SoftmaxState& state = scratch.states[static_cast<size_t>(q)];
    state = {-std::numeric_limits<float>::infinity(), 0.0f};
    if (block.sinks != nullptr) state = {block.sinks[q % block.group], 1.0f};
  }
}

/// Makes all rows attend to the selected positions of a view.
void attend_to_selected(const AttentionBlock& block, AttentionScratch& scratch) {
  Attending attending(block, scratch);
  const int64_t count = block.view.selected_count;
  for (int64_t chunk = 0; chunk * kAttentionChunk < count; ++chunk) {
    const int64_t left = std::min(count - chunk * kAttentionChunk, kAttentionChunk);
    attending.take({block.view.selected, chunk, false, 0, block.rows, round_up(left, kInnerStep)},
                   [&](int64_t) {
                     return Range{0, left};
                   });
  }
}

}  // namespace

void AttentionScratch::reserve(int64_t query_rows, int64_t width) {
  scores.reserve(static_cast<size_t>(query_rows * kAttentionChunk));
  probabilities.reserve(static_cast<size_t>(query_rows * kAttentionChunk));
  sums.reserve(static_cast<size_t>(query_rows * width));
  states.reserve(static_cast<size_t>(query_rows));
  floats.reserve(static_cast<size_t>(query_rows * std::max(width, kAttentionChunk)));
  const int64_t larger = std::max(width, kAttentionChunk);
  codes.reserve(query_rows, larger, larger);
}

int64_t attention_rows_per_block(int64_t group) {
  return std::max<int64_t>(1, kQueryRows / group);
}

void begin_attention(const AttentionBlock& block, AttentionScratch& scratch) {
  const int64_t query_rows = block.rows * block.group;
  scratch.reserve(query_rows, block.width);
  std::memset(scratch.sums.data(), 0, static_cast<size_t>(query_rows * block.width) * sizeof(float));
  forget(block, scratch);
  if (block.view.selected_count > 0) attend_to_selected(block, scratch);
}

void attend_to_chunks(const AttentionBlock& block, int64_t first_row, int64_t rows, int64_t first_chunk,
                      int64_t end_chunk, AttentionScratch& scratch) {
  const Range all = visible_positions(block, first_row, rows);
  const bool sinks = block.view.sinks > 0 && all.first >= kAttentionChunk;
  if (!sinks) first_chunk = std::max(first_chunk, all.first / kAttentionChunk);
  end_chunk = std::min(end_chunk, ceil_div(all.end, kAttentionChunk));

  const auto next = [&](int64_t chunk) {
    return sinks && chunk == 0 ? all.first / kAttentionChunk : chunk + 1;
  };
  const auto coded = [&](int64_t chunk, int64_t row) {
    return chunk < block.cache.coded.end_chunk(block.positions[row]);
  };
  Attending attending(block, scratch);
  for (int64_t chunk = first_chunk; chunk < end_chunk; chunk = next(chunk)) {
    const int64_t begin = chunk * kAttentionChunk;
    const int64_t extent = std::min(kAttentionChunk, round_up(all.end - begin, kInnerStep));
    for (int64_t row = first_row, end = row; row < first_row + rows; row = end) {
      const bool as_codes = coded(chunk, row);
      while (end < first_row + rows && coded(chunk, end) == as_codes) ++end;
      const int64_t after = next(chunk);
      attending.take(
          {block.cache, chunk, as_codes, row, end - row, as_codes ? kAttentionChunk : extent,
           after < end_chunk && coded(after, row) == as_codes ? after : -1},
          [&](int64_t r) {
            const Range visible = visible_positions(block, r);
            if (begin == 0 && visible.first >= kAttentionChunk) return Range{0, block.view.sinks};
            return Range{std::max<int64_t>(visible.first - begin, 0), std::min(visible.end - begin, extent)};
          });
    }
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

void add_attention_shares(const AttentionBlock& block, AttentionScratch& scratch, std::span<float> shares) {
  const int64_t query_rows = block.rows * block.group;
  scratch.reserve(query_rows, block.width);
  forget(block, scratch);
  const auto wanted = std::ssize(shares);
  const Range all = visible_positions(block, 0, block.rows);
  Attending attending(block, scratch);
  for (const bool known : {false, true}) {  // the largest score and the sum of a query; then the shares
    const int64_t end_chunk = ceil_div(known ? std::min<int64_t>(wanted, all.end) : all.end, kAttentionChunk);
    for (int64_t chunk = all.first / kAttentionChunk; chunk < end_chunk; ++chunk) {
      const int64_t begin = chunk * kAttentionChunk;
      const int64_t extent = std::min(kAttentionChunk, round_up(all.end - begin, kInnerStep));
      attending.look(chunk, extent, [&](int64_t q, const Range& range) {
        BFloat16* const weights = scratch.probabilities.data() + q * kAttentionChunk;
        SoftmaxState& whole = scratch.states[static_cast<size_t>(q)];
        SoftmaxState state = whole;
        attending.softmax(scratch.scores.data() + q * kAttentionChunk, extent, range, state, weights);
        if (!known) {
          whole = state;
          return;
        }
        const float factor = 1.0f / whole.sum;
        const int64_t end = std::min<int64_t>(range.end, wanted - begin);
        for (int64_t i = range.first; i < end; ++i) {
          shares[static_cast<size_t>(begin + i)] += to_float(weights[i]) * factor;
        }
      });
    }
  }
}

}  // namespace verbatim
