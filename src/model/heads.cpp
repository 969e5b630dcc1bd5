#include <algorithm>
#include <limits>

#include "model/forward_pass.h"

namespace verbatim {

namespace {

/// The number of rows of a head that one thread writes into the cache, because neighbouring rows of a
/// sequence share cache lines.
constexpr int64_t kRowsPlaced = 16;

}  // namespace

void Decoder::ForwardPass::norm_heads(const Buffer<float>& weight, int64_t r, int64_t columns, float* heads) {
  const int64_t width = config.head_norm == HeadNorm::kPerHead ? config.head_dim : columns;
  const int64_t padded = round_up<int64_t>(width, 16);
  float* const room = work.gathered.data() + r * round_up<int64_t>(query_columns, kInnerStep);
  std::fill(room + width, room + padded, 0.0f);
  for (float* head = heads; head < heads + columns; head += width) {
    std::copy_n(head, width, room);
    kernel.rms_norm(room, weight.data(), padded, width, config.rms_norm_epsilon, room);
    std::copy_n(room, width, head);
  }
}

void Decoder::ForwardPass::place_heads(const LayerWeights& layer, int64_t layer_index, Matrix<float> qkv) {
  if (layer.qkv_bias.size() > 0) {
    each_row([&](int64_t r) {
      kernel.add(qkv.row(r), layer.qkv_bias.data(), round_up<int64_t>(query_columns + 2 * kv_columns, 16));
    });
  }
  if (config.head_norm != HeadNorm::kNone) {
    each_row([&](int64_t r) {
      norm_heads(layer.query_norm, r, query_columns, qkv.row(r));
      norm_heads(layer.key_norm, r, kv_columns, qkv.row(r) + query_columns);
    });
  }
  const int64_t blocks = ceil_div(count, kRowsPlaced);
  const int64_t items = config.kv_heads * blocks;
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item % blocks * kRowsPlaced;
      for (int64_t r = first; r < std::min(first + kRowsPlaced, count); ++r) {
        place_head(layer_index, r, item / blocks, qkv.row(r));
      }
    }
  };
  if (count < kRowsToShare) return range(0, items);
  team.split(items, range);
}

void Decoder::ForwardPass::place_head(int64_t layer_index, int64_t r, int64_t head, float* qkv) {
  const Row& row = rows[static_cast<size_t>(r)];
  KvCache& cache = *caches[static_cast<size_t>(row.sequence)];
  for (int64_t h = 0; h < group; ++h) {
    float* const q = qkv + (head * group + h) * config.head_dim;
    rotate(layer_index, r, q);
    const int64_t at = ((head * count + r) * group + h) * head_width;
    if (cache.reads_f32_queries()) {
      float* const query = work.f32_queries.data() + at;
      std::fill(std::copy_n(q, config.head_dim, query), query + head_width, 0.0f);
      continue;
    }
    BFloat16* const query = work.queries.data() + at;
    for (int64_t d = 0; d < config.head_dim; ++d) query[d] = to_bfloat16(q[d]);
    std::fill(query + config.head_dim, query + head_width, BFloat16{0});
  }
  float* const k = qkv + query_columns + head * config.head_dim;
  const float* const v = k + kv_columns;
  rotate(layer_index, r, k);
  if (Branches* const branches = work.branches_of(r)) {
    const int64_t at = head * config.head_dim;
    std::copy_n(k, config.head_dim, branches->keys(layer_index, r) + at);
    std::copy_n(v, config.head_dim, branches->values(layer_index, r) + at);
    if (!branches->on_trunk(r)) return;
  }
  cache.write(layer_index, head, row.position, k, v);
}

void Decoder::ForwardPass::rotate(int64_t layer_index, int64_t r, float* head) const {
  const LayerKind& layer = decoder.kinds_[static_cast<size_t>(layer_index)];
  if (!layer.rotates) return;
  const int64_t at = angles_at(layer.rope, r);
  kernel.rotate(head, work.cosine.data() + at, work.sine.data() + at, decoder.rope().half());
}

void Decoder::ForwardPass::settle_caches(int64_t layer_index) {
  for (int64_t first = 0, end = 0; first < count; first = end) {
    const int32_t sequence = rows[static_cast<size_t>(first)].sequence;
    int64_t last = 0;
    for (end = first; end < count && rows[static_cast<size_t>(end)].sequence == sequence; ++end) {
      last = std::max<int64_t>(last, rows[static_cast<size_t>(end)].position);
    }
    KvCache& cache = *caches[static_cast<size_t>(sequence)];
    if (cache.has_positions_to_encode(layer_index, last)) {
      team.split(config.kv_heads, [&](int64_t begin, int64_t end_head) {
        for (int64_t head = begin; head < end_head; ++head)
          cache.encode_older_positions(layer_index, head, last);
      });
    }
    cache.finish_encoding(layer_index, last);
  }
}

SparseView Decoder::ForwardPass::view(int64_t layer_index, int64_t head, int64_t row) const {
  if (kind.sparse == nullptr) return {};
  // A layer with a window reads no more than that, and a view would add positions outside of it.
  if (decoder.kinds_[static_cast<size_t>(layer_index)].window > 0) return {};
  return kind.sparse->view(layer_index, head, rows[static_cast<size_t>(row)].position);
}

KvCache& Decoder::ForwardPass::cache_of(const RowBlock& block) const {
  return *caches[static_cast<size_t>(rows[static_cast<size_t>(block.first)].sequence)];
}

AttentionBlock Decoder::ForwardPass::attention_block(int64_t layer_index, int64_t head,
                                                     const RowBlock& block) const {
  const Buffer<float>& sinks = decoder.weights_.layers[static_cast<size_t>(layer_index)].head_sinks;
  const int64_t first_query = (head * count + block.first) * group * head_width;
  const KvCache& cache = cache_of(block);
  return {.queries = work.queries.data() + first_query,
          .f32_queries = cache.reads_f32_queries() ? work.f32_queries.data() + first_query : nullptr,
          .positions = work.positions.data() + block.first,
          .rows = block.count,
          .group = group,
          .head_dim = config.head_dim,
          .width = head_width,
          .window = decoder.kinds_[static_cast<size_t>(layer_index)].window,
          .scale = score_scale,
          .cap = config.soft_caps.scores,
          .sinks = sinks.size() > 0 ? sinks.data() + head * group : nullptr,
          .cache = cache.head(layer_index, head, kind.cache),
          .view = view(layer_index, head, block.first),
          .out = nullptr,
          .out_stride = 0};
}

void Decoder::ForwardPass::show(int64_t layer_index) {
  // Memory is reserved here, because the members of the team must not throw.
  for (AttentionScratch& scratch : work.attention) scratch.reserve(count * group, head_width);
  team.run([&](int member, int size) {
    const int64_t end = int64_t{config.kv_heads} * (member + 1) / size;
    for (int64_t head = int64_t{config.kv_heads} * member / size; head < end; ++head) {
      kind.observer->observe(layer_index, head, attention_block(layer_index, head, {0, count}),
                             work.attention[static_cast<size_t>(member)]);
    }
  });
}

void Decoder::ForwardPass::attention(int64_t layer_index, Matrix<float> out) {
  const auto blocks = std::ssize(work.blocks);
  const int64_t items = blocks * config.kv_heads;
  int64_t most_rows = 0;
  for (const RowBlock& block : work.blocks) most_rows = std::max(most_rows, block.count);
  for (AttentionScratch& scratch : work.attention) {  // here, because the members of the team must not throw
    scratch.reserve(most_rows * group, head_width);
  }
  const auto range = [&](int64_t begin, int64_t end, AttentionScratch& scratch) {
    for (int64_t item = begin; item < end; ++item) {
      const RowBlock& block = work.blocks[static_cast<size_t>(item % blocks)];
      const int64_t head = item / blocks;
      AttentionBlock attending = attention_block(layer_index, head, block);
      attending.out = out.row(block.first) + head * group * config.head_dim;
      attending.out_stride = out.stride;
      if (Branches* const branches = work.branches_of(block.first)) {
        attend_as_tree(attending, layer_index, head, *branches, cache_of(block), scratch);
      } else {
        attend(attending, scratch);
      }
    }
  };
  team.split(items, 1, [&](int member, int64_t begin, int64_t end) {
    range(begin, end, work.attention[static_cast<size_t>(member)]);
  });
}

void Decoder::ForwardPass::attend_as_tree(const AttentionBlock& block, int64_t layer_index, int64_t head,
                                          Branches& branches, KvCache& cache, AttentionScratch& scratch) {
  const std::span<const Chain> chains = branches.chains();
  const int64_t root = chains.front().first;
  const int64_t first_chunk = rows[static_cast<size_t>(root)].position / kAttentionChunk;
  begin_attention(block, scratch);
  attend_to_chunks(block, 0, block.rows, 0, first_chunk, scratch);
  for (const Chain& chain : chains) {
    const bool branch = chain.first != root;
    if (branch) branches.enter(chain, layer_index, head, config.head_dim, cache);
    attend_to_chunks(block, chain.first - root, chain.count, first_chunk, std::numeric_limits<int64_t>::max(),
                     scratch);
    if (branch) branches.leave(chain, layer_index, head, config.head_dim, cache);
  }
  end_attention(block, scratch);
}

}  // namespace verbatim
