#include "drafting/pass_costs.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "base/cpu.h"
#include "base/stopwatch.h"
#include "kernels/dispatch.h"
#include "kv/dense.h"
#include "verbatim/verbatim.h"

namespace verbatim {

namespace {

/// The number of tokens of the context that passes are timed after, the most rounds in which numbers of rows
/// are timed, and the seconds after which one number of rows is not timed again.
constexpr int64_t kContext = 128;
constexpr int kMostRounds = 7;
constexpr double kMostSeconds = 0.6;

/// The seconds for which passes over the same number of rows are repeated, where one takes less. While
/// decoding, passes follow others like them; after a pass over many rows, which leaves other things in the
/// processor's caches, the first ones take up to twice as long.
constexpr double kRepeatedSeconds = 0.01;

/// The weight of one pass in the estimate of how busy the machine is. The first passes weigh more, because
/// the costs may have been measured long ago.
constexpr double kScaleRate = 0.1;

/// The weight of one comparison of two passes in the ratio of their costs, and the logarithm to which the
/// ratio of their times is limited, relative to the expected one.
constexpr double kCorrectionRate = 0.1;
constexpr double kLargestCorrection = 0.25;

/// The readings that the matrices of a layer are read in, which can differ in one model; of experts, those of
/// the first.
std::string layer_readings(const LayerWeights& layer, Reading reading) {
  const bool experts = !layer.experts.empty();
  const LinearWeight& gate_up = experts ? layer.experts.front().gate_up : layer.gate_up;
  const LinearWeight& down = experts ? layer.experts.front().down : layer.down;
  std::string names;
  for (const LinearWeight* const matrix : {&layer.qkv, &layer.output, &gate_up, &down}) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", reading_name(matrix->resolve(reading)));
  }
  return names;
}

/// The words of a key about the experts that a pass uses; empty for a model without experts.
std::string experts_text(const ModelConfig& config, const PassKind& kind) {
  const Experts& experts = config.experts;
  if (experts.count == 0) return "";
  return fmt::format(", {} of {} experts {} wide in all but {} layers",
                     kind.experts > 0 ? kind.experts : experts.used, experts.count, experts.intermediate_size,
                     config.dense_layers.size());
}

/// Some tokens that differ. Equal ones would go through the same experts, and a pass over many rows would
/// read fewer weights than with the rows of a text.
std::vector<int32_t> different_tokens(int64_t count, int32_t vocabulary) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(vocabulary));
  }
  return tokens;
}

}  // namespace

PassCosts::PassCosts(const std::array<double, kRows.size()>& seconds) : seconds_(seconds) {
  // More rows never cost less; where they seem to, the measurements were noisy.
  for (size_t i = seconds_.size() - 1; i-- > 0;) seconds_[i] = std::min(seconds_[i], seconds_[i + 1]);
  learnt_ = seconds_;
}

PassCosts::Place PassCosts::place_of(double rows) {
  size_t i = 1;
  while (i + 1 < kRows.size() && rows > static_cast<double>(kRows[i])) ++i;
  const auto before = static_cast<double>(kRows[i - 1]);
  return {i, (rows - before) / (static_cast<double>(kRows[i]) - before)};
}

double PassCosts::at(const std::array<double, kRows.size()>& seconds, double rows) {
  const Place place = place_of(rows);
  const double before = seconds[place.after - 1];
  return before + place.share * (seconds[place.after] - before);
}

double PassCosts::table(int64_t all_rows) const {
  return at(seconds_, static_cast<double>(all_rows));
}

double PassCosts::of(int64_t rows) const {
  return of_pass(rows * batch_);
}

double PassCosts::of_pass(int64_t all_rows) const {
  return scale_ * at(learnt_, static_cast<double>(all_rows));
}

double PassCosts::row(int64_t rows) const {
  return of(rows + 1) - of(rows);
}

double PassCosts::row_near(int64_t rows) const {
  const int64_t fewest = std::max<int64_t>(rows - 2, 1);
  const int64_t most = std::max<int64_t>(rows, 1) + 2;
  return (of(most) - of(fewest)) / static_cast<double>(most - fewest);
}

void PassCosts::observe(int64_t rows, double seconds) {
  observe_pass(rows * batch_, seconds);
}

void PassCosts::observe_pass(int64_t all_rows, double seconds) {
  const double expected = at(learnt_, static_cast<double>(all_rows));
  if (expected <= 0.0) return;
  // A single pass that was interrupted must not count for ten.
  const double ratio = std::clamp(seconds / expected, 0.25, 4.0);
  scale_ += std::max(kScaleRate, 1.0 / static_cast<double>(++observed_ + 1)) * (ratio - scale_);
  compare(all_rows, ratio);
}

/// Compares a pass with the one before it. The machine was as busy for both, so their ratios to what was
/// expected would be the same if the costs of their rows had the right ratio.
void PassCosts::compare(int64_t all_rows, double ratio) {
  if (last_rows_ > 0 && last_rows_ != all_rows) {
    const double error = std::clamp(std::log(ratio / last_ratio_), -kLargestCorrection, kLargestCorrection);
    correct(all_rows, kCorrectionRate * error);
    correct(last_rows_, -kCorrectionRate * error);
  }
  last_rows_ = all_rows;
  last_ratio_ = ratio;
}

/// Raises the costs about `all_rows` by a share of themselves.
void PassCosts::correct(int64_t all_rows, double change) {
  const Place place = place_of(static_cast<double>(all_rows));
  const double share = std::min(place.share, 1.0);
  learnt_[place.after - 1] *= 1.0 + change * (1.0 - share);
  learnt_[place.after] *= 1.0 + change * share;
  for (size_t i = 1; i < kRows.size(); ++i) learnt_[i] = std::max(learnt_[i], learnt_[i - 1]);
}

PassCosts measure_pass_costs(Evaluator& evaluator, const PassKind& kind,
                             const std::function<void(double)>& progress) {
  constexpr auto kSizes = PassCosts::kRows.size();
  DenseCache cache(evaluator.decoder().cache_shape(), kContext + PassCosts::kRows.back());
  const std::vector<int32_t> tokens =
      different_tokens(kContext + PassCosts::kRows.back(), evaluator.decoder().config().vocab_size);
  evaluator.evaluate({tokens.data(), static_cast<size_t>(kContext)}, 0, 0, kind, cache);
  std::array<std::vector<double>, kSizes> times;
  std::array<double, kSizes> spent{};
  const auto pass = [&](int64_t rows) {
    evaluator.evaluate({tokens.data(), static_cast<size_t>(kContext + rows)}, kContext, rows, kind, cache);
    return evaluator.runner().last_pass().seconds;  // without waiting for others' passes
  };
  pass(PassCosts::kRows.back());  // makes room for rows
  // In turns, so that a disturbance of some tenths of a second does not make all times of one number of rows
  // longer, and of no other. Small numbers of rows, which are those of most passes, are timed most often.
  for (int round = 0; round < kMostRounds; ++round) {
    for (size_t i = 0; i < kSizes; ++i) {
      if (spent[i] <= kMostSeconds) {
        const auto turn = std::chrono::steady_clock::now();
        do {
          times[i].push_back(pass(PassCosts::kRows[i]));
        } while (seconds_since(turn) < kRepeatedSeconds);
        spent[i] += seconds_since(turn);
      }
      const size_t done = static_cast<size_t>(round) * kSizes + i + 1;
      if (progress) progress(static_cast<double>(done) / static_cast<double>(kMostRounds * int{kSizes}));
    }
  }
  std::array<double, kSizes> seconds{};
  // What disturbs a pass makes it longer, and never shorter. How busy the machine is while it decodes, scale_
  // learns; which numbers of rows happened to be disturbed here, it could not.
  std::transform(times.begin(), times.end(), seconds.begin(),
                 [](const auto& each) { return *std::min_element(each.begin(), each.end()); });
  return PassCosts(seconds);
}

std::string pass_costs_key(const Evaluator& evaluator, const PassKind& kind) {
  const ModelConfig& config = evaluator.decoder().config();
  const LinearWeight& head = kind.head != nullptr ? *kind.head : evaluator.decoder().weights().head;
  return fmt::format(
      "verbatim {}; {}; {}; {} threads; {} wide, {} deep, {} layers, {}/{} heads of {}, {} tokens; {}, "
      "layers in {}, {}{}{}, scheme {}",
      version(), cpu_features().model_name, kernels().name, evaluator.threads(), config.hidden_size,
      config.intermediate_size, kind.layers > 0 ? kind.layers : config.layers, config.heads, config.kv_heads,
      config.head_dim, head.columns, reading_name(head.resolve(kind.reading)),
      layer_readings(evaluator.decoder().weights().layers.front(), kind.reading),
      activation_name(config.activation), config.plain_mlp ? " without a gate" : "",
      experts_text(config, kind), scheme_name(config.quantization));
}

PassCosts pass_costs(Evaluator& evaluator, const PassKind& kind,
                     const std::function<void(double)>& progress) {
  const std::optional<std::filesystem::path> folder = cache_folder();
  const std::string key = pass_costs_key(evaluator, kind);
  if (folder) {
    if (const std::optional<PassCosts> known = find_pass_costs(*folder, key)) return *known;
  }
  const PassCosts measured = measure_pass_costs(evaluator, kind, progress);
  if (folder) keep_pass_costs(*folder, key, measured);
  return measured;
}

std::optional<PassCosts> find_pass_costs(const std::filesystem::path& folder, const std::string& key) {
  const std::optional<std::vector<double>> kept = find_costs(folder, key, PassCosts::kRows.size());
  if (!kept) return std::nullopt;
  std::array<double, PassCosts::kRows.size()> seconds{};
  std::copy(kept->begin(), kept->end(), seconds.begin());
  return PassCosts(seconds);
}

bool keep_pass_costs(const std::filesystem::path& folder, const std::string& key, const PassCosts& costs) {
  return keep_costs(folder, key, PassCosts::kRows, costs.measured());
}

}  // namespace verbatim
