#include "speculation/store_costs.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <vector>

#include "base/cpu.h"
#include "base/median.h"
#include "base/philox.h"
#include "drafting/kept_costs.h"
#include "formats/linear.h"
#include "formats/pack_linear.h"
#include "kernels/dispatch.h"
#include "verbatim/verbatim.h"

namespace verbatim {

namespace {

/// The matrix is as large as those of models for which the choice matters: together its stores are 64 MB, so
/// that most caches do not hold both, and each product reads its weights from memory.
constexpr int64_t kSide = 4096;

/// The most seconds that measuring one number of rows may take, and the most rounds.
constexpr double kSecondsPerSize = 0.15;
constexpr int kMostRounds = 5;

/// How much longer a product with the nested store may take.
constexpr double kTolerance = 1.1;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Weights that are spread about as those of trained matrices: the sum of eight bytes of noise.
void fill_column(int64_t column, std::span<float> weights) {
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto words = philox({static_cast<uint32_t>(i), static_cast<uint32_t>(column), 0, 0}, {1, 2});
    uint32_t sum = 0;
    for (int byte = 0; byte < 8; ++byte) sum += words[static_cast<size_t>(byte / 4)] >> (byte % 4 * 8) & 0xff;
    weights[i] = to_float(to_bfloat16((static_cast<float>(sum) - 1020.0f) * 1e-4f));
  }
}

}  // namespace

bool nested_keeps_up(const StoreCosts& costs) {
  for (size_t i = 0; i < StoreCosts::kRows.size(); ++i) {
    if (costs.nested[i] > kTolerance * costs.bf16[i]) return false;
  }
  return true;
}

StoreCosts measure_store_costs(ThreadTeam& team) {
  PackLinearOptions options;
  options.formats = {Format::kBf16, Format::kMxbf16};
  const LinearWeight weight = pack_linear(kSide, kSide, fill_column, options, team).weight;
  const int64_t most = StoreCosts::kRows.back();
  Buffer<float> inputs(static_cast<size_t>(most * kSide));
  for (int64_t row = 0; row < most; ++row) {
    fill_column(-1 - row, {inputs.data() + row * kSide, static_cast<size_t>(kSide)});
  }
  Buffer<float> outputs(static_cast<size_t>(most * kSide));
  LinearWorkspace workspace;
  workspace.reserve(most, kSide, team.size());
  StoreCosts costs;
  for (size_t i = 0; i < StoreCosts::kRows.size(); ++i) {
    const int64_t rows = StoreCosts::kRows[i];
    const auto timed = [&](Reading reading) {
      const double start = seconds_now();
      linear(weight, reading, {inputs.data(), rows, kSide, kSide}, {outputs.data(), rows, kSide, kSide},
             workspace, team);
      return seconds_now() - start;
    };
    std::vector<double> bf16;
    std::vector<double> nested;
    const double start = seconds_now();
    do {
      bf16.push_back(timed(Reading::kBf16));
      nested.push_back(timed(Reading::kMxbf16Full));
    } while (bf16.size() < 2 || (bf16.size() < kMostRounds && seconds_now() - start < kSecondsPerSize));
    costs.bf16[i] = median(bf16);
    costs.nested[i] = median(nested);
  }
  return costs;
}

StoreCosts store_costs(ThreadTeam& team) {
  const std::optional<std::filesystem::path> folder = cache_folder();
  const auto key = [&](std::string_view store) {
    return fmt::format("verbatim {}; {}; {}; {} threads; products with {}", version(),
                       cpu_features().model_name, kernels().name, team.size(), store);
  };
  constexpr size_t kCount = StoreCosts::kRows.size();
  if (folder) {
    const auto bf16 = find_costs(*folder, key("bf16"), kCount);
    const auto nested = find_costs(*folder, key("mxbf16"), kCount);
    if (bf16 && nested) {
      StoreCosts kept;
      std::copy(bf16->begin(), bf16->end(), kept.bf16.begin());
      std::copy(nested->begin(), nested->end(), kept.nested.begin());
      return kept;
    }
  }
  const StoreCosts measured = measure_store_costs(team);
  if (folder) {
    keep_costs(*folder, key("bf16"), StoreCosts::kRows, measured.bf16);
    keep_costs(*folder, key("mxbf16"), StoreCosts::kRows, measured.nested);
  }
  return measured;
}

}  // namespace verbatim
