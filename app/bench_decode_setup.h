#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "bench_decode_runs.h"
#include "command_line.h"

namespace verbatim::app {

// What `bench decode` and `bench sweep` share: the options, and what they print of the conditions and of each
// result.

struct DecodeBenchOptions {
  std::string model;
  std::string draft_model;
  std::vector<std::string> prompt_files;
  int64_t limit = 0;
  GenerateOptions generate;
  int32_t threads = 0;
  bool perplexity = false;
  bool json = false;
};

/// Adds MODEL, --prompts, --limit, -n, --draft-model, --threads, --ignore-eos, --json and the sampling
/// options.
void add_decode_bench(Command command, DecodeBenchOptions& options);

/// What was measured, and under which conditions.
struct DecodeMeasurement {
  std::string_view weights;  ///< Model::origin()
  MachineReport machine;     ///< with the threads that were asked for, if any were
  std::vector<TokenPrompts> sets;
  std::vector<DecodeCase> cases;                   ///< the first is plain
  std::vector<std::vector<DecodeResult>> results;  ///< [set][case]
};

/// Measures recipes beside plain decoding, which comes first among the cases; without prompt files they are
/// loaded and nothing is decoded. `loaded`, if there is one, sees the cases before anything is decoded and
/// may refuse them by an exception. Throws Error(kUsage) when two recipes or two prompt files have the same
/// name; Exit when Ctrl-C ended it, for which the caller holds an InterruptGuard.
DecodeMeasurement measure_decoding(const DecodeBenchOptions& options, std::vector<Recipe> recipes,
                                   const std::function<void(const std::vector<DecodeCase>&)>& loaded = {});

/// "model", "weights", "cpu", ..., and where text was decoded its settings.
nlohmann::ordered_json conditions_json(const DecodeBenchOptions& options, const DecodeMeasurement& measured);
/// The same in two lines for people.
std::string conditions_text(const DecodeBenchOptions& options, const DecodeMeasurement& measured);

/// "recipe", "prompt_set", "tokens_per_second", ... of one case on one set.
nlohmann::ordered_json result_json(const DecodeMeasurement& measured, size_t set, size_t at);

/// A setting as it was written: JSON would show that a float is only near to 0.2.
double as_written(float value);

/// So many for every hundred tokens generated.
double percent_of_tokens(int64_t count, const Stats& stats);

}  // namespace verbatim::app
