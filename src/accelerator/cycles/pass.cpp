#include "accelerator/cycles/pass.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "accelerator/cycles/product.h"
#include "accelerator/fail.h"

namespace verbatim::accelerator {

namespace {

/// The states that an operation remembers at most.
constexpr size_t kMostKnown = 50'000;

// The operations of a pass that do not depend on the context.
enum Place { kQkv, kOutput, kGateUp, kDown, kLogits, kRouter };

}  // namespace

struct PassRunner::Operation {
  using Relative = MachineClock::Relative;
  struct Hash {
    size_t operator()(const Relative& state) const {
      uint64_t hash = 0xcbf29ce484222325;
      for (const int64_t value : state) {
        hash = (hash ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 29;
      }
      return hash;
    }
  };
  /// What it led to when it began in some state.
  struct Known {
    int64_t shift;
    Relative after;
    Totals gained;
  };

  std::vector<Segment> segments;
  int64_t times = 1;
  std::unordered_map<Relative, Known, Hash> known;
};

PassRunner::PassRunner(const Hardware& hardware, const DramService& dram, const Shape& shape, bool skip)
    : hardware_(hardware), dram_(dram), shape_(shape), skip_(skip) {
  rewind();
}

PassRunner::~PassRunner() = default;

void PassRunner::rewind() {
  clock_.emplace(hardware_, dram_, skip_);
}

/// Runs an operation, or adds what the same operation did from the same state.
void PassRunner::run(Operation& operation) {
  const auto simulate = [&] {
    for (int64_t i = 0; i < operation.times; ++i) {
      for (const Segment& segment : operation.segments) clock_->run(segment);
    }
  };
  if (!skip_) return simulate();
  const Operation::Relative before = clock_->relative();
  const auto found = operation.known.find(before);
  if (found != operation.known.end()) {
    clock_->jump(found->second.shift, found->second.after, found->second.gained);
    return;
  }
  const int64_t time = clock_->memory_free();
  const Totals totals = clock_->totals();
  simulate();
  if (operation.known.size() >= kMostKnown) return;
  Operation::Known known{.shift = clock_->memory_free() - time, .after = clock_->relative(), .gained = {}};
  known.gained.add_times(clock_->totals(), totals, 1);
  operation.known.emplace(before, known);
}

PassRunner::Operation& PassRunner::operation(const Pass& pass, int place) {
  const Pass without_context{.mode = pass.mode, .rows = pass.rows, .context = 0};
  std::unique_ptr<Operation>& made = operations_[{without_context, place}];
  if (made) return *made;
  made = std::make_unique<Operation>();
  Product product{.rows = pass.rows,
                  .outputs = 0,
                  .inputs = shape_.hidden,
                  .mode = pass.mode,
                  .weight_bits = hardware_.weight_bits(pass.mode),
                  .keys_or_values = false,
                  .sfu_passes = hardware_.norm_passes};
  const auto to_experts = [&] {
    if (shape_.experts == 0) return;
    // As many experts as there can be are read, and share the rows.
    const int64_t chosen = pass.rows * shape_.experts_used;
    made->times = std::min(shape_.experts, chosen);
    product.rows = (chosen + made->times - 1) / made->times;
  };
  switch (place) {
    case kQkv:
      product.outputs = shape_.query_size() + 2 * shape_.kv_size();
      product.sfu_passes = hardware_.rotation_passes;
      break;
    case kOutput:
      product.outputs = shape_.hidden;
      product.inputs = shape_.query_size();
      break;
    case kRouter:
      product.outputs = shape_.experts;
      break;
    case kGateUp:
      product.outputs = (shape_.gated ? 2 : 1) * shape_.intermediate;
      product.sfu_passes = hardware_.activation_passes;
      to_experts();
      break;
    case kDown:
      product.outputs = shape_.hidden;
      product.inputs = shape_.intermediate;
      to_experts();
      break;
    default:
      product.outputs = shape_.vocabulary;
      product.sfu_passes = hardware_.logit_passes;
  }
  made->segments = cut(hardware_, product);
  return *made;
}

/// Attention, a head of keys and values after the other: while the SFU makes the probabilities of one, the
/// array takes the keys of the next.
std::vector<Segment> PassRunner::attention(const Pass& pass) const {
  const int64_t length = pass.context + pass.rows;
  Product scores{.rows = pass.rows * (shape_.heads / shape_.kv_heads),
                 .outputs = length,
                 .inputs = shape_.head_size,
                 .mode = Mode::kFull,
                 .weight_bits = hardware_.kv_bits,
                 .keys_or_values = true,
                 .sfu_passes = hardware_.softmax_passes};
  Product values = scores;
  values.outputs = shape_.head_size;
  values.inputs = length;
  values.sfu_passes = 1;
  const std::vector<Segment> keys_of_head = cut(hardware_, scores);
  const std::vector<Segment> values_of_head = cut(hardware_, values);
  const auto blocks_of = [](const std::vector<Segment>& segments) {
    double blocks = 0;
    for (const Segment& segment : segments) {
      blocks += static_cast<double>(segment.times) * static_cast<double>(segment.blocks.size());
    }
    return blocks;
  };
  const double blocks =
      static_cast<double>(shape_.kv_heads) * (blocks_of(keys_of_head) + blocks_of(values_of_head));
  if (blocks > static_cast<double>(kMostBlocks)) {
    bad_input(
        "{}: the attention to {} positions falls into {:.3g} blocks, and at most {} are simulated: make "
        "blocks "
        "larger, or the context shorter",
        hardware_.name, length, blocks, kMostBlocks);
  }

  Segment all;
  const auto append = [&](const std::vector<Segment>& segments, bool keys, int64_t head) {
    bool first = true;
    for (const Segment& segment : segments) {
      for (int64_t i = 0; i < segment.times; ++i) {
        for (Block block : segment.blocks) {
          const auto number = static_cast<int8_t>(head % 2);
          if (keys && block.sfu_cycles > 0) block.noted = number;
          if (first && !keys) block.waits_for = number;
          if (first && keys && head > 0) block.waits_for = Block::kNothing;
          all.blocks.push_back(block);
          first = false;
        }
      }
    }
  };
  append(keys_of_head, true, 0);
  for (int64_t head = 1; head < shape_.kv_heads; ++head) {
    append(keys_of_head, true, head);
    append(values_of_head, false, head - 1);
  }
  append(values_of_head, false, shape_.kv_heads - 1);
  // The new keys and values go to memory.
  all.blocks.front().write_bytes += static_cast<int64_t>(
      std::ceil(static_cast<double>(2 * pass.rows * shape_.kv_size()) * hardware_.kv_bits / 8));
  return {all};
}

int64_t PassRunner::run(const Pass& pass) {
  const int64_t begin = clock_->end();
  Operation attending;
  attending.segments = attention(pass);
  for (int64_t layer = 0; layer < shape_.layers; ++layer) {
    run(operation(pass, kQkv));
    run(attending);
    run(operation(pass, kOutput));
    if (shape_.experts > 0) run(operation(pass, kRouter));
    run(operation(pass, kGateUp));
    run(operation(pass, kDown));
  }
  run(operation(pass, kLogits));
  return clock_->end() - begin;
}

}  // namespace verbatim::accelerator
