#include "verbatim/outlook.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <string_view>

#include "attention/attention.h"
#include "base/aligned_buffer.h"
#include "base/available_memory.h"
#include "base/matrix.h"
#include "base/processors.h"
#include "base/stopwatch.h"
#include "base/thread_team.h"
#include "kernels/dispatch.h"
#include "verbatim/error.h"
#include "verbatim/recipe.h"

namespace verbatim {

namespace {

/// Which weights a recipe holds, in bits per weight.
struct RecipeWeights {
  const char* name;
  const char* only_for = nullptr;  ///< the type of the model's weights that its store keeps; null: any
  double instead = 0;              ///< of a store that takes the place of the model's own type; 0: none does
  double beside = 0;               ///< of a copy to draft from
  double cache = 1;                ///< the share of keys and values in BF16 that the cache takes
};
constexpr double kMxbf16Bits = 12.28;
constexpr RecipeWeights kRecipes[] = {
    {.name = "plain"},
    {.name = "auto"},
    {.name = "ngram"},
    {.name = "ml-specqd", .beside = 4.25},
    {.name = "self-int4", .beside = 4.125},
    {.name = "nested", .only_for = "BF16", .instead = kMxbf16Bits},
    {.name = "speq", .only_for = "BF16", .instead = 13.16},
    {.name = "quantspec", .beside = 4.25, .cache = 0.53},
};

double read_bandwidth(ThreadTeam& team, std::optional<int64_t> available) {
  constexpr int64_t kMostBytes = int64_t{512} << 20;  // more than most caches hold
  const int64_t bytes = std::min(kMostBytes, available.value_or(kMostBytes) / 8) / 64 * 64;
  if (bytes == 0) return 0;
  AlignedBuffer buffer(static_cast<size_t>(bytes));
  const auto split = [&](auto&& work) {
    team.split(bytes / 64, [&](int64_t begin, int64_t end) { work(begin * 64, (end - begin) * 64); });
  };
  split([&](int64_t begin, int64_t count) {
    std::memset(buffer.data() + begin, 1, static_cast<size_t>(count));
  });
  std::atomic<uint64_t> sum = 0;  // so that no read can be left out
  double fastest = 0;
  for (int sweep = 0; sweep < 5; ++sweep) {
    const auto start = std::chrono::steady_clock::now();
    split([&](int64_t begin, int64_t count) {
      sum.fetch_xor(kernels().read_all(buffer.data() + begin, count));
    });
    fastest = std::max(fastest, static_cast<double>(bytes) / seconds_since(start));
  }
  return fastest;
}

double operations(ThreadTeam& team) {
  constexpr double kSeconds = 0.02;
  double fastest = 0;
  for (int round = 0; round < 3; ++round) {
    std::atomic<int64_t> done = 0;
    const auto start = std::chrono::steady_clock::now();
    team.split(team.size(), [&](int64_t, int64_t) {
      float results[16];
      while (seconds_since(start) < kSeconds) done += kernels().multiply_registers(10000, results);
    });
    fastest = std::max(fastest, static_cast<double>(done) / seconds_since(start));
  }
  return fastest;
}

/// Whether most weights of a model that is not packed are of this type.
bool is_mostly(const ModelReport& report, std::string_view type) {
  const auto found = report.types.find(std::string(type));
  return found != report.types.end() && 2 * found->second.weights > report.parameters;
}

/// The memory of those weights of a packed file that a recipe reads; nothing if the file lacks some of them.
std::optional<int64_t> packed_bytes(const ModelReport& report, const Recipe& recipe) {
  int64_t bytes = 0;
  for (const std::string& format : recipe.formats()) {
    if (format == "full") {
      bytes += report.memory.full;
      continue;
    }
    const auto stored = std::ranges::find(report.packed->formats, format, &StoredFormatReport::format);
    if (stored == report.packed->formats.end()) return std::nullopt;
    bytes += stored->bytes;
  }
  return bytes;
}

std::optional<int64_t> recipe_bytes(const ModelReport& report, const RecipeWeights& recipe,
                                    std::optional<int64_t> available) {
  const auto of_bits = [&](double bits) {
    return static_cast<int64_t>(bits / 8 * static_cast<double>(report.memory.weights));
  };
  if (std::string_view(recipe.name) == "auto") {
    const int64_t with_copy = report.memory.full + report.memory.mxfp4;
    // Where BF16 and the copy would leave no room, it takes one store for both (favoured_store()).
    const bool too_much = available && with_copy > *available / 11 * 10;
    return too_much && is_mostly(report, "BF16") ? of_bits(kMxbf16Bits) : with_copy;
  }
  if (report.packed) return packed_bytes(report, load_recipe(recipe.name));
  if (recipe.only_for != nullptr && !is_mostly(report, recipe.only_for)) return std::nullopt;
  return (recipe.instead > 0 ? of_bits(recipe.instead) : report.memory.full) + of_bits(recipe.beside);
}

/// Sets the speeds that the machine's memory and arithmetic allow.
void set_speeds(Outlook& outlook, const ModelReport& report) {
  ThreadTeam team(hardware_threads());
  outlook.operations = operations(team);
  try {
    outlook.read_bandwidth = read_bandwidth(team, outlook.available_memory);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kMachine)
      throw;  // a limit of memory that available_memory() does not know
  }
  const MemoryEstimate& memory = report.memory;
  if (memory.pass == 0) return;
  outlook.tokens_per_second = outlook.read_bandwidth / static_cast<double>(memory.pass);
  // Of a prompt the output matrix multiplies the last token alone.
  const double used = static_cast<double>(memory.pass) / static_cast<double>(memory.full);
  const double head = static_cast<double>(report.vocab_size) * report.hidden_size;
  const double weights = std::max(used * static_cast<double>(memory.weights) - head, 1.0);
  outlook.prompt_tokens_per_second = outlook.operations / (2.0 * weights);
}

}  // namespace

int64_t memory_with_context(const MemoryEstimate& memory, int64_t tokens) {
  int64_t cache = 0;
  int64_t sum = 0;
  const bool too_large =
      __builtin_mul_overflow(memory.kv_per_token, round_up<int64_t>(tokens, kAttentionChunk), &cache) ||
      __builtin_add_overflow(memory.full, cache, &sum);
  return too_large ? std::numeric_limits<int64_t>::max() : sum;
}

Outlook outlook_for(const ModelReport& report) {
  Outlook outlook;
  outlook.available_memory = available_memory();
  set_speeds(outlook, report);
  for (const RecipeWeights& recipe : kRecipes) {
    const std::optional<int64_t> bytes = recipe_bytes(report, recipe, outlook.available_memory);
    if (!bytes) continue;
    RecipeOutlook& added = outlook.recipes.emplace_back(RecipeOutlook{recipe.name, *bytes, std::nullopt});
    if (!outlook.available_memory) continue;
    const double per_token = recipe.cache * static_cast<double>(report.memory.kv_per_token);
    const int64_t left = std::max<int64_t>(*outlook.available_memory - *bytes, 0);
    added.longest_context = std::min<int64_t>(
        report.context, static_cast<int64_t>(static_cast<double>(left) / std::max(per_token, 1.0)));
  }
  return outlook;
}

}  // namespace verbatim
