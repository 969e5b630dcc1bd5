#include "model/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "attention/attention.h"
#include "base/error.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

/// The number of rows below which the calling thread does row operations alone, which is faster than sharing
/// the work.
constexpr int64_t kRowsToShare = 4;
/// The number of rows of a head that one thread writes into the cache, because neighbouring rows of a
/// sequence share cache lines.
constexpr int64_t kRowsPlaced = 16;

}  // namespace

/// One pass: the operations of the transformer in order, each over all rows.
struct Decoder::ForwardPass {
  const Decoder& decoder;
  const ModelConfig& config;
  std::span<const Row> rows;
  const PassKind& kind;
  std::span<KvCache* const> caches;
  DecoderWorkspace& work;
  ThreadTeam& team;
  const KernelTable& kernel = kernels();

  int64_t count = static_cast<int64_t>(rows.size());
  int64_t hidden_width = round_up<int64_t>(config.hidden_size, kInnerStep);
  int64_t group = config.heads / config.kv_heads;
  int64_t head_width = round_up<int64_t>(config.head_dim, kQueryStep);
  int64_t query_columns = int64_t{config.heads} * config.head_dim;
  int64_t kv_columns = int64_t{config.kv_heads} * config.head_dim;
  Matrix<float> hidden{work.hidden.data(), count, hidden_width};
  Matrix<float> normed{work.normed.data(), count, hidden_width};

  template <typename Work>
  void each_of(int64_t number, Work&& work_on) {
    const auto range = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) work_on(i);
    };
    if (number < kRowsToShare) {
      range(0, number);
    } else {
      team.split(number, range);
    }
  }
  template <typename Work>
  void each_row(Work&& do_row) {
    each_of(count, do_row);
  }

  /// Puts the inputs of a matrix into its order: see packed_inputs().
  Matrix<const float> arranged(const Buffer<float>& order, Matrix<const float> x) {
    if (order.size() == 0) return x;
    const Matrix<float> out(work.arranged.data(), x.rows, static_cast<int64_t>(order.size()));
    each_of(x.rows, [&](int64_t r) {
      const float* const from = x.row(r);
      float* const to = out.row(r);
      for (int64_t i = 0; i < out.columns; ++i) {
        const auto at = static_cast<int32_t>(order[static_cast<size_t>(i)]);
        to[i] = at < 0 ? 0.0f : from[at];
      }
    });
    return out;
  }

  Matrix<float> multiply(const LinearWeight& weight, const Buffer<float>& order, Matrix<const float> x) {
    if (kind.inputs != nullptr) (*kind.inputs)(weight, x);
    const Matrix<float> y(work.projected.data(), x.rows, weight.padded_columns());
    linear(weight, kind.reading, arranged(order, x), y, work.linear, team);
    return y;
  }

  void transform(const std::optional<Hadamard>& transform, Matrix<float> x, int64_t width) {
    if (transform) each_row([&](int64_t r) { transform->forward(x.row(r), width); });
  }

  void embed() {
    each_row([&](int64_t r) {
      const Row& row = rows[static_cast<size_t>(r)];
      decoder.weights_.embedding.read_row(row.token,
                                          {hidden.row(r), static_cast<size_t>(config.hidden_size)});
      decoder.rope_.angles(row.position, work.cosine.data() + r * decoder.rope_.half(),
                           work.sine.data() + r * decoder.rope_.half());
      // The padding behind the row must be zero: numbers that an earlier pass left there would enter the
      // norm.
      std::fill(hidden.row(r) + config.hidden_size, hidden.row(r) + hidden_width, 0.0f);
      work.positions[static_cast<size_t>(r)] = row.position;
    });
  }

  void norm(const Buffer<float>& weight) {
    each_row([&](int64_t r) {
      kernel.rms_norm(hidden.row(r), weight.data(), hidden_width, config.hidden_size, config.rms_norm_epsilon,
                      normed.row(r));
    });
  }

  void add_to_hidden(Matrix<const float> y) {
    each_row(
        [&](int64_t r) { kernel.add(hidden.row(r), y.row(r), round_up<int64_t>(config.hidden_size, 16)); });
  }

  /// Norms the queries or the keys of a row, `columns` numbers of one part of qkv, as the model wants it.
  void norm_heads(const Buffer<float>& weight, int64_t r, int64_t columns, float* heads) {
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

  /// Adds biases, norms and rotates queries and keys, lays the queries out by key-value head and stores keys
  /// and values.
  void place_heads(const LayerWeights& layer, int64_t layer_index, Matrix<float> qkv) {
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

  /// Places one key-value head of a row, and the queries that share it.
  void place_head(int64_t layer_index, int64_t r, int64_t head, float* qkv) {
    const int64_t half = decoder.rope_.half();
    const float* const cosine = work.cosine.data() + r * half;
    const float* const sine = work.sine.data() + r * half;
    for (int64_t h = 0; h < group; ++h) {
      float* const q = qkv + (head * group + h) * config.head_dim;
      kernel.rotate(q, cosine, sine, half);
      BFloat16* const query = work.queries.data() + ((head * count + r) * group + h) * head_width;
      for (int64_t d = 0; d < config.head_dim; ++d) query[d] = to_bfloat16(q[d]);
      std::fill(query + config.head_dim, query + head_width, BFloat16{0});
    }
    float* const k = qkv + query_columns + head * config.head_dim;
    const float* const v = k + kv_columns;
    kernel.rotate(k, cosine, sine, half);
    const Row& row = rows[static_cast<size_t>(r)];
    if (Branches* const branches = work.branches_of(r)) {
      const int64_t at = head * config.head_dim;
      std::copy_n(k, config.head_dim, branches->keys(layer_index, r) + at);
      std::copy_n(v, config.head_dim, branches->values(layer_index, r) + at);
      if (!branches->on_trunk(r)) return;
    }
    caches[static_cast<size_t>(row.sequence)]->write(layer_index, head, row.position, k, v);
  }

  /// Lets the caches encode the older positions that rows of this pass read as codes.
  void settle_caches(int64_t layer_index) {
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

  SparseView view(int64_t layer_index, int64_t head, int64_t row) const {
    if (kind.sparse == nullptr) return {};
    return kind.sparse->view(layer_index, head, rows[static_cast<size_t>(row)].position);
  }

  KvCache& cache_of(const RowBlock& block) const {
    return *caches[static_cast<size_t>(rows[static_cast<size_t>(block.first)].sequence)];
  }

  /// Makes the attention block of some rows and a key-value head, without `out`.
  AttentionBlock attention_block(int64_t layer_index, int64_t head, const RowBlock& block) const {
    return {.queries = work.queries.data() + (head * count + block.first) * group * head_width,
            .positions = work.positions.data() + block.first,
            .rows = block.count,
            .group = group,
            .head_dim = config.head_dim,
            .width = head_width,
            .window = config.sliding_window,
            .scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim)),
            .cache = cache_of(block).head(layer_index, head, kind.cache),
            .view = view(layer_index, head, block.first),
            .out = nullptr,
            .out_stride = 0};
  }

  /// Shows the queries of every key-value head to the observer.
  void show(int64_t layer_index) {
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

  /// Calls attend() on every block of rows of a sequence and every key-value head. Threads take whole blocks.
  void attention(int64_t layer_index, Matrix<float> out) {
    const auto blocks = std::ssize(work.blocks);
    const int64_t items = blocks * config.kv_heads;
    int64_t most_rows = 0;
    for (const RowBlock& block : work.blocks) most_rows = std::max(most_rows, block.count);
    for (AttentionScratch& scratch :
         work.attention) {  // here, because the members of the team must not throw
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

  /// Computes attention for a tree: first all rows over the chunks before the tree, then chain by chain over
  /// the rest.
  void attend_as_tree(const AttentionBlock& block, int64_t layer_index, int64_t head, Branches& branches,
                      KvCache& cache, AttentionScratch& scratch) {
    const std::span<const Chain> chains = branches.chains();
    const int64_t root = chains.front().first;
    const int64_t first_chunk = rows[static_cast<size_t>(root)].position / kAttentionChunk;
    begin_attention(block, scratch);
    attend_to_chunks(block, 0, block.rows, 0, first_chunk, scratch);
    for (const Chain& chain : chains) {
      const bool branch = chain.first != root;
      if (branch) branches.enter(chain, layer_index, head, config.head_dim, cache);
      attend_to_chunks(block, chain.first - root, chain.count, first_chunk,
                       std::numeric_limits<int64_t>::max(), scratch);
      if (branch) branches.leave(chain, layer_index, head, config.head_dim, cache);
    }
    end_attention(block, scratch);
  }

  void layer(int64_t index) {
    const LayerWeights& weights = decoder.weights_.layers[static_cast<size_t>(index)];
    norm(weights.attention_norm);
    place_heads(weights, index, multiply(weights.qkv, weights.qkv_order, normed));
    const Matrix<float> heads(work.gathered.data(), count, round_up<int64_t>(query_columns, kInnerStep));
    clear_padding(heads, query_columns);
    settle_caches(index);
    if (kind.observer != nullptr) show(index);
    attention(index, heads);
    transform(decoder.head_transform_, heads, config.head_dim);
    add_to_hidden(multiply(weights.output, weights.output_order, heads));

    norm(weights.mlp_norm);
    const Matrix<float> gate_up = multiply(weights.gate_up, weights.gate_up_order, normed);
    const int64_t inner_width = round_up<int64_t>(config.intermediate_size, kInnerStep);
    const Matrix<float> activated(work.gathered.data(), count, inner_width);
    each_row([&](int64_t r) { activate(gate_up.row(r), activated.row(r)); });
    clear_padding(activated, config.intermediate_size);
    transform(decoder.inner_transform_, activated, 1);
    add_to_hidden(multiply(weights.down, weights.down_order, activated));
  }

  /// Computes out = silu(gate) · up. Gate and up lie side by side, so the last step may read beyond one into
  /// the other; numbers that it writes beyond the end are cleared with the padding.
  void activate(float* gate_up, float* out) const {
    kernel.silu_gate(gate_up, gate_up + config.intermediate_size,
                     round_up<int64_t>(config.intermediate_size, 16), out);
  }

  /// Zeroes the columns from `used` on: matrices read whole inner steps.
  static void clear_padding(Matrix<float> x, int64_t used) {
    if (used == x.columns) return;
    for (int64_t r = 0; r < x.rows; ++r) std::fill(x.row(r) + used, x.row(r) + x.columns, 0.0f);
  }

  Matrix<const float> logits(std::span<const int32_t> wanted) {
    const LinearWeight& head = kind.head != nullptr ? *kind.head : decoder.weights_.head;
    const auto size = std::ssize(wanted);
    each_of(size, [&](int64_t i) {
      kernel.rms_norm(hidden.row(wanted[static_cast<size_t>(i)]), decoder.weights_.final_norm.data(),
                      hidden_width, config.hidden_size, config.rms_norm_epsilon, normed.row(i));
    });
    const Matrix<const float> read = Matrix<const float>(normed).slice(0, size);
    if (kind.hidden_states) return {read.data, read.rows, config.hidden_size, read.stride};
    if (kind.inputs != nullptr) (*kind.inputs)(head, read);
    const Matrix<const float> x = arranged(decoder.weights_.head_order, read);
    const Matrix<float> y(work.logits.data(), x.rows, head.padded_columns());
    linear(head, kind.reading, x, y, work.linear, team);
    return {y.data, y.rows, std::min<int64_t>(config.vocab_size, head.columns), y.stride};
  }
};

Decoder::Decoder(const ModelConfig& config, DecoderWeights weights)
    : config_(config), weights_(std::move(weights)), rope_(config) {
  if (config_.quantization != QuantizationScheme::kQuarot) return;
  head_transform_.emplace(config_.heads);
  inner_transform_.emplace(config_.intermediate_size);
}

namespace {

/// Makes room for a pass of `rows` rows, `logits_rows` of which want logits.
void reserve(DecoderWorkspace& work, const ModelConfig& config, const DecoderWeights& weights, int64_t rows,
             int64_t logits_rows, int members) {
  const LayerWeights& layer = weights.layers.front();
  const int64_t head_width = round_up<int64_t>(config.head_dim, kQueryStep);
  const int64_t widest = std::max({layer.qkv.padded_columns(), layer.output.padded_columns(),
                                   layer.gate_up.padded_columns(), layer.down.padded_columns()});
  const int64_t gathered = std::max(layer.output.padded_k(), layer.down.padded_k());
  if (rows > work.rows) {
    work.rows = 0;  // while some of it may be missing
    work.hidden = Buffer<float>(static_cast<size_t>(rows * layer.qkv.padded_k()));
    work.normed = Buffer<float>(static_cast<size_t>(rows * layer.qkv.padded_k()));
    // The activation may read a step past the end of the last row.
    work.projected = Buffer<float>(static_cast<size_t>(rows * widest + kInnerStep));
    work.gathered = Buffer<float>(static_cast<size_t>(rows * gathered));
    if (config.quantization == QuantizationScheme::kAtom) {
      const int64_t inputs = std::max(layer.qkv.padded_k(), gathered);
      work.arranged = Buffer<float>(static_cast<size_t>(rows * inputs));
    }
    work.queries = Buffer<BFloat16>(static_cast<size_t>(rows * config.heads * head_width));
    work.cosine = Buffer<float>(static_cast<size_t>(rows * config.head_dim / 2));
    work.sine = Buffer<float>(static_cast<size_t>(rows * config.head_dim / 2));
    work.positions = Buffer<int32_t>(static_cast<size_t>(rows));
    work.linear.reserve(rows, std::max<int64_t>(config.hidden_size, gathered), members);
    work.rows = rows;
  }
  work.logits.reserve(static_cast<size_t>(logits_rows * weights.head.padded_columns()));
  if (static_cast<int>(work.attention.size()) < members) work.attention.resize(static_cast<size_t>(members));
}

/// The end of the run of rows of one sequence that begins at `first`.
int64_t end_of_sequence(std::span<const Row> rows, int64_t first) {
  auto end = static_cast<size_t>(first) + 1;
  while (end < rows.size() && rows[end].sequence == rows[static_cast<size_t>(first)].sequence) ++end;
  return static_cast<int64_t>(end);
}

/// Finds the sequences whose rows have branches, and cuts the rows of the others into blocks.
void plan_rows(std::span<const Row> rows, const ModelConfig& config, int64_t layers, DecoderWorkspace& work) {
  const int64_t rows_per_block = attention_rows_per_block(config.heads / config.kv_heads);
  work.branched = 0;
  work.blocks.clear();
  for (int64_t first = 0, end = 0; first < std::ssize(rows); first = end) {
    end = end_of_sequence(rows, first);
    bool tree = false;
    for (int64_t i = first; i < end && !tree; ++i) tree = begins_branch(rows, static_cast<size_t>(i));
    if (!tree) {
      for (int64_t block = first; block < end; block += rows_per_block) {
        work.blocks.push_back({block, std::min(rows_per_block, end - block)});
      }
      continue;
    }
    if (work.branched == work.branches.size()) work.branches.emplace_back();
    work.branches[work.branched++].plan(rows, first, end, layers, int64_t{config.kv_heads} * config.head_dim);
    work.blocks.push_back({first, end - first});
  }
}

}  // namespace

Matrix<const float> Decoder::forward(std::span<const Row> rows, const PassKind& kind,
                                     std::span<KvCache* const> caches, int64_t first_logits_row,
                                     DecoderWorkspace& workspace, ThreadTeam& team) const {
  if (first_logits_row < 0) fail(ErrorKind::kUsage, "a pass needs at least one row");
  workspace.logits_rows.clear();
  for (int64_t row = first_logits_row; row < std::ssize(rows); ++row) {
    workspace.logits_rows.push_back(static_cast<int32_t>(row));
  }
  return forward(rows, kind, caches, workspace.logits_rows, workspace, team);
}

Matrix<const float> Decoder::forward(std::span<const Row> rows, const PassKind& kind,
                                     std::span<KvCache* const> caches, std::span<const int32_t> logits_rows,
                                     DecoderWorkspace& workspace, ThreadTeam& team) const {
  if (rows.empty()) fail(ErrorKind::kUsage, "a pass needs at least one row");
  for (const Row& row : rows) {
    if (row.token < 0 || row.token >= config_.vocab_size) {
      bad_input("token {} is outside the vocabulary of {} tokens", row.token, config_.vocab_size);
    }
    if (row.position < 0 || row.position >= caches[static_cast<size_t>(row.sequence)]->capacity()) {
      bad_input("position {} is outside the cache of {} positions", row.position,
                caches[static_cast<size_t>(row.sequence)]->capacity());
    }
  }
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t layers = kind.layers > 0 ? std::min<int64_t>(kind.layers, config_.layers) : config_.layers;
  plan_rows(rows, config_, layers, workspace);
  if (kind.observer != nullptr && (rows.front().sequence != rows.back().sequence || workspace.branched > 0)) {
    fail(ErrorKind::kUsage, "a pass that is observed has the rows of one sequence, without branches");
  }
  reserve(workspace, config_, weights_, count, std::ssize(logits_rows), team.size());
  ForwardPass pass{.decoder = *this,
                   .config = config_,
                   .rows = rows,
                   .kind = kind,
                   .caches = caches,
                   .work = workspace,
                   .team = team};
  pass.embed();
  for (int64_t i = 0; i < layers; ++i) pass.layer(i);
  if (logits_rows.empty()) return {};
  return pass.logits(logits_rows);
}

void Decoder::keep_path(int64_t last, KvCache& cache, DecoderWorkspace& workspace) const {
  if (Branches* const branches = workspace.branches_of(last)) {
    branches->keep(last, config_.kv_heads, config_.head_dim, cache);
  }
}

}  // namespace verbatim
