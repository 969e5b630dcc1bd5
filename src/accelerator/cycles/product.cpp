#include "accelerator/cycles/product.h"

#include <algorithm>
#include <cmath>

#include "accelerator/fail.h"

namespace verbatim::accelerator {

namespace {

constexpr int64_t kSumBytes = 4;  // FP32
constexpr int64_t kGroup = 128;   // inputs with a scale of their own

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

int64_t bytes_of(double count, double bits) {
  return static_cast<int64_t>(std::ceil(count * bits / 8));
}

/// What the whole array takes at once.
struct Reach {
  int64_t outputs;
  int64_t inputs;
  int64_t rows;
};

Reach reach_of(const Hardware& hardware, Mode mode) {
  using TilesShare = Hardware::TilesShare;
  const bool across = hardware.groups_lie == Hardware::GroupsLie::kAcrossPes;
  const auto tiles = [&](TilesShare share) { return hardware.tiles_share == share ? hardware.tiles : 1; };
  const int64_t lanes = hardware.lanes(mode);
  return {.outputs = tiles(TilesShare::kOutputs) * lanes * (across ? 1 : hardware.pes),
          .inputs = tiles(TilesShare::kInputs) * (across ? hardware.pes : 1),
          .rows = tiles(TilesShare::kRows)};
}

/// Cuts one product.
class Cutter {
 public:
  Cutter(const Hardware& hardware, const Product& product)
      : hardware_(hardware),
        product_(product),
        reach_(reach_of(hardware, product.mode)),
        weight_space_(hardware.share_of(hardware.weight_buffer)),
        output_space_(hardware.share_of(hardware.output_buffer)) {
    choose_outputs_and_inputs();
  }

  std::vector<Segment> cut() const {
    std::vector<Segment> segments;
    const int64_t whole = product_.outputs / outputs_;
    if (whole > 0) segments.push_back({.blocks = column(outputs_, true), .times = 1});
    if (whole > 1) segments.push_back({.blocks = column(outputs_, false), .times = whole - 1});
    if (product_.outputs % outputs_ > 0) {
      segments.push_back({.blocks = column(product_.outputs % outputs_, whole == 0), .times = 1});
    }
    if (spills()) segments.front().blocks.front().write_bytes += activations(product_.inputs);
    return segments;
  }

 private:
  double bits() const { return product_.weight_bits; }
  bool has_exceptions() const {
    return !product_.keys_or_values && product_.mode == Mode::kFull && hardware_.exceptions > 0;
  }
  /// The bits that a weight takes in the buffer, its share of the exceptions included.
  double space_bits() const {
    return bits() + (has_exceptions() ? hardware_.exceptions * hardware_.exception_bits : 0);
  }
  int64_t weight_bytes(int64_t outputs, int64_t inputs) const {
    return bytes_of(static_cast<double>(outputs) * static_cast<double>(inputs), bits());
  }
  /// The most weights of a block, for so many inputs of each output.
  int64_t most_outputs(int64_t inputs) const {
    const auto by_weights = static_cast<int64_t>(static_cast<double>(weight_space_) * 8 /
                                                 (space_bits() * static_cast<double>(inputs)));
    return std::min(by_weights, output_space_ / (kSumBytes * product_.rows));
  }

  void choose_outputs_and_inputs() {
    const int64_t granule =
        hardware_.groups_lie == Hardware::GroupsLie::kAcrossPes ? reach_.inputs : reach_.inputs * kGroup;
    outputs_ = hardware_.block_outputs;
    inputs_ = hardware_.block_inputs;
    if (outputs_ == 0) {
      // All outputs that the array takes at once, with as many inputs as fit; or with all inputs, as many
      // outputs as fit.
      outputs_ = std::min(reach_.outputs, most_outputs(std::min(granule, product_.inputs)));
      const int64_t more = most_outputs(inputs_ > 0 ? inputs_ : product_.inputs) / reach_.outputs;
      outputs_ = std::max(outputs_, more * reach_.outputs);
    }
    if (outputs_ == 0) {
      bad_input("{}: {} rows and {} inputs do not fit the buffers: make them larger, or the groups smaller",
                hardware_.name, product_.rows, std::min(granule, product_.inputs));
    }
    if (inputs_ == 0) {
      const auto fit = static_cast<int64_t>(static_cast<double>(weight_space_) * 8 /
                                            (space_bits() * static_cast<double>(outputs_)));
      inputs_ = fit >= granule ? fit / granule * granule : fit;
    }
    outputs_ = std::min(outputs_, product_.outputs);
    inputs_ = std::min(inputs_, product_.inputs);
    const int64_t sums = outputs_ * product_.rows * kSumBytes;
    const int64_t weights =
        bytes_of(static_cast<double>(outputs_) * static_cast<double>(inputs_), space_bits());
    if (inputs_ == 0 || weights > weight_space_ || sums > output_space_) {
      bad_input(
          "{}: a block of {} outputs and {} inputs with {} rows takes {} bytes of weights and {} of sums, "
          "and the buffers have {} and {}",
          hardware_.name, outputs_, inputs_, product_.rows, weights, sums, weight_space_, output_space_);
    }
    const int64_t blocks = divide_up(product_.inputs, inputs_);
    if (blocks > kMostBlocks) {
      bad_input("{}: {} inputs fall into {} blocks of {}, and at most {} are simulated: make blocks larger",
                hardware_.name, product_.inputs, blocks, inputs_, kMostBlocks);
    }
  }

  int64_t activations(int64_t inputs) const {
    return bytes_of(static_cast<double>(product_.rows * inputs), hardware_.activation_bits);
  }
  /// Whether the rows do not stay in the buffer for activations while they are needed.
  bool spills() const {
    return activations(product_.inputs) > hardware_.share_of(hardware_.activation_buffer);
  }

  /// The blocks of some outputs with all inputs.
  std::vector<Block> column(int64_t outputs, bool first) const {
    std::vector<Block> blocks;
    for (int64_t begin = 0; begin < product_.inputs; begin += inputs_) {
      const int64_t inputs = std::min(inputs_, product_.inputs - begin);
      blocks.push_back(block(outputs, inputs));
      blocks.back().begins_sums = begin == 0;
    }
    if (first) blocks.front().waits_for = Block::kEverything;
    if (product_.sfu_passes > 0) {
      blocks.back().sfu_cycles =
          divide_up(product_.rows * outputs * product_.sfu_passes, hardware_.sfu_lanes);
    }
    return blocks;
  }

  Block block(int64_t outputs, int64_t inputs) const {
    Block block;
    block.read_bytes = weight_bytes(outputs, inputs);
    block.macs = product_.rows * outputs * inputs;
    block.array_cycles = array_cycles(hardware_, product_.mode, product_.rows, outputs, inputs);
    if (has_exceptions()) {
      // A multiplier in each tile adds the exceptions of a block to its sums while the PEs work.
      const double count = std::ceil(hardware_.exceptions * static_cast<double>(outputs * inputs));
      block.read_bytes += bytes_of(count, hardware_.exception_bits);
      const int64_t products = static_cast<int64_t>(count) * product_.rows;
      block.array_cycles = std::max(block.array_cycles, divide_up(products, hardware_.tiles));
    }
    (product_.keys_or_values ? block.kv_bytes : block.weight_bytes) = block.read_bytes;
    if (spills()) block.read_bytes += activations(inputs);
    return block;
  }

  const Hardware& hardware_;
  const Product& product_;
  const Reach reach_;
  const int64_t weight_space_;
  const int64_t output_space_;
  int64_t outputs_ = 0;  // of a block
  int64_t inputs_ = 0;
};

}  // namespace

int64_t array_cycles(const Hardware& hardware, Mode mode, int64_t rows, int64_t outputs, int64_t inputs) {
  const Reach reach = reach_of(hardware, mode);
  return divide_up(rows, reach.rows) * divide_up(outputs, reach.outputs) * divide_up(inputs, reach.inputs);
}

int64_t peak_macs(const Hardware& hardware, Mode mode) {
  return hardware.tiles * hardware.pes * hardware.lanes(mode);
}

std::vector<Segment> cut(const Hardware& hardware, const Product& product) {
  return Cutter(hardware, product).cut();
}

}  // namespace verbatim::accelerator
