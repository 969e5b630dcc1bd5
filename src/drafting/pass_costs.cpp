#include "drafting/pass_costs.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "base/cpu.h"
#include "base/median.h"
#include "kernels/dispatch.h"
#include "kv/dense.h"
#include "verbatim/verbatim.h"

namespace verbatim {

namespace {

/// The number of tokens of the context that passes are timed after, and the most seconds that measuring one
/// number of rows may take.
constexpr int64_t kContext = 128;
constexpr double kSecondsPerSize = 0.25;
constexpr int kMostRounds = 5;

/// The weight of one pass in the estimate of how busy the machine is. The first passes weigh more, because
/// the costs may have been measured long ago.
constexpr double kScaleRate = 0.1;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

PassCosts::PassCosts(const std::array<double, kRows.size()>& seconds) : seconds_(seconds) {
  // More rows never cost less; where they seem to, the measurements were noisy.
  for (size_t i = seconds_.size() - 1; i-- > 0;) seconds_[i] = std::min(seconds_[i], seconds_[i + 1]);
}

double PassCosts::at(int64_t rows) const {
  size_t i = 1;
  while (i + 1 < kRows.size() && rows > kRows[i]) ++i;
  const double slope = (seconds_[i] - seconds_[i - 1]) / static_cast<double>(kRows[i] - kRows[i - 1]);
  return seconds_[i - 1] + slope * static_cast<double>(rows - kRows[i - 1]);
}

double PassCosts::table(int64_t rows) const {
  return at(rows * batch_);
}

double PassCosts::of(int64_t rows) const {
  return scale_ * table(rows);
}

double PassCosts::row(int64_t rows) const {
  return of(rows + 1) - of(rows);
}

void PassCosts::observe(int64_t rows, double seconds) {
  observe_pass(rows * batch_, seconds);
}

void PassCosts::observe_pass(int64_t all_rows, double seconds) {
  const double expected = at(all_rows);
  if (expected <= 0.0) return;
  // A single pass that was interrupted must not count for ten.
  const double ratio = std::clamp(seconds / expected, 0.25, 4.0);
  scale_ += std::max(kScaleRate, 1.0 / static_cast<double>(++observed_ + 1)) * (ratio - scale_);
}

PassCosts measure_pass_costs(Evaluator& evaluator, const PassKind& kind,
                             const std::function<void(double)>& progress) {
  constexpr auto kSizes = PassCosts::kRows.size();
  DenseCache cache(evaluator.decoder().cache_shape(), kContext + PassCosts::kRows.back());
  std::vector<int32_t> tokens(static_cast<size_t>(kContext + PassCosts::kRows.back()), 0);
  evaluator.evaluate({tokens.data(), static_cast<size_t>(kContext)}, 0, 0, kind, cache);
  std::array<double, kSizes> seconds{};
  for (size_t i = 0; i < kSizes; ++i) {
    const int64_t rows = PassCosts::kRows[i];
    const std::span<const int32_t> all(tokens.data(), static_cast<size_t>(kContext + rows));
    std::vector<double> times;
    const double start = now();
    do {
      evaluator.evaluate(all, kContext, rows, kind, cache);
      times.push_back(evaluator.runner().last_pass().seconds);  // without waiting for others' passes
      // The first pass over so many rows makes room for them.
    } while (times.size() < 2 || (times.size() < kMostRounds && now() - start < kSecondsPerSize));
    times.erase(times.begin());
    seconds[i] = median(times);
    if (progress) progress(static_cast<double>(i + 1) / static_cast<double>(kSizes));
  }
  return PassCosts(seconds);
}

std::string pass_costs_key(const Evaluator& evaluator, const PassKind& kind) {
  const ModelConfig& config = evaluator.decoder().config();
  const LinearWeight& head = kind.head != nullptr ? *kind.head : evaluator.decoder().weights().head;
  return fmt::format(
      "verbatim {}; {}; {}; {} threads; {} wide, {} deep, {} layers, {}/{} heads of {}, {} tokens; {}, "
      "scheme {}",
      version(), cpu_features().model_name, kernels().name, evaluator.threads(), config.hidden_size,
      config.intermediate_size, kind.layers > 0 ? kind.layers : config.layers, config.heads, config.kv_heads,
      config.head_dim, head.columns, reading_name(head.resolve(kind.reading)),
      scheme_name(config.quantization));
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
