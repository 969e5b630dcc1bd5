#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace verbatim {

/// What to simulate of SPEQ's accelerator (docs/accelerator.md).
struct SimulateOptions {
  /// The machine: a name of simulated_machines() or a .toml file.
  std::string hardware = "speq";
  /// The machine that decodes plainly, to compare with.
  std::string baseline = "fp16";
  /// The memory of both: a name of simulated_memories() or a .toml file; empty: each machine's own.
  std::string dram = {};
  /// The model: one of the paper's five ("llama2-13b"), a config.json or its folder.
  std::string config = {};
  /// What decoding did: a file that `verbatim generate --trace` or `--json` wrote; empty: the two below say.
  std::string trace = {};
  /// The mean number of drafted tokens of a step, and the share of them that is accepted (SPEQ, equation 1).
  /// Nothing and nothing: plain decoding.
  std::optional<double> draft_length = {};
  std::optional<double> acceptance = {};
  /// Draft passes of every such step whose token is dropped unverified, beside the drafted ones.
  int64_t dropped = 0;
  int64_t prompt_tokens = 1024;
  int64_t generated_tokens = 1024;
};

/// What decoding took on a simulated machine.
struct SimulatedDecoding {
  std::string machine;
  std::string memory;
  int64_t passes = 0;        ///< in full mode
  int64_t draft_passes = 0;  ///< in quantize mode
  int64_t tokens = 0;
  int64_t cycles = 0;  ///< of the machine's clock
  double seconds = 0;
  double seconds_draft = 0;
  double seconds_full = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  double weight_share = 0;  ///< of the bytes read
  double memory_busy = 0;   ///< share of the time in which the memory transferred
  double array_busy = 0;    ///< share of the time in which the array multiplied
  /// Joules of the memory, and of the machine by the power that the paper states; nothing: not known.
  std::optional<double> dram_joules;
  std::optional<double> chip_joules;
};

/// A simulation: the machine beside a baseline that decodes the same tokens plainly.
struct Simulation {
  std::string model;
  int64_t prompt_tokens = 0;
  int64_t drafted = 0;
  int64_t accepted = 0;
  int64_t steps = 0;
  SimulatedDecoding decoding;
  SimulatedDecoding baseline;
  double speedup = 0;
  /// Times of a draft pass and of a verifying one over that of a pass of the baseline, on average (Td/Tar and
  /// Tv/Tar of SPEQ's equation 2).
  double draft_time = 0;
  double verify_time = 0;
};

/// Simulates a decoding. Throws Error(kBadInput) for files and values that are not what they should be, and
/// Error(kUsage) for options that do not fit together.
Simulation simulate(const SimulateOptions& options);

/// A simulation as text for people, in several lines, and as a JSON object.
std::string simulation_text(const Simulation& simulation);
std::string simulation_json(const Simulation& simulation);

namespace accelerator {
struct PaperPart;
}

/// What the paper prints beside what a machine does on its models, computed once for texts and pages.
using PaperComparison = std::shared_ptr<const accelerator::PaperPart>;

/// Compares the machine of the options with the paper; of the options only the machine, the memory and the
/// length of prompts matter. Throws Error(kBadInput).
PaperComparison compare_with_paper(const SimulateOptions& options);

/// A comparison with the paper as text for people, and as a page in HTML, whole in itself.
std::string paper_text(const PaperComparison& paper);
std::string paper_page(const PaperComparison& paper);

/// A page in HTML, whole in itself, of a simulation with these options, and of a comparison with the paper.
std::string simulation_page(const SimulateOptions& options, const Simulation& simulation,
                            const PaperComparison& paper);

/// The names of the machines and memories that are built in.
std::vector<std::string> simulated_machines();
std::vector<std::string> simulated_memories();

}  // namespace verbatim
