#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "samples.h"

namespace verbatim::train {

/// How sensitivities are computed.
struct FisherOptions {
  SampleOptions samples;
  std::string text_digest;     ///< SHA-256 of the text, in hexadecimal, for the file
  bool output_matrix = false;  ///< whether the output matrix has sensitivities too
  bool resume = false;         ///< whether to go on with what an interrupted run has left
  int32_t threads = 1;         ///< samples at a time; changes no byte of the file
  /// Called now and then with what is being done and the fraction of it, on any of the threads, one at a
  /// time.
  std::function<void(const char* stage, double fraction)> progress = {};
  std::function<bool()> cancelled = {};  ///< asked between samples, on any thread
};

/// A file of sensitivities that was written.
struct FisherReport {
  double loss = 0.0;              ///< the mean loss per token of the samples, in nats
  int64_t weights = 0;            ///< weights that have a sensitivity
  int64_t zeros = 0;              ///< those of them whose sensitivity is 0
  std::vector<std::string> none;  ///< tensors whose sensitivities are all 0, as of experts that no row chose
};

/// The memory in bytes that write_sensitivities() takes, estimated from above. No more threads count than
/// there are samples.
int64_t fisher_memory(const ModelConfig& config, const FisherOptions& options);
/// The room in bytes that it takes on the disk, with the file.
int64_t fisher_disk(const ModelConfig& config, const FisherOptions& options);

/// Throws Error(kMachine) unless memory and disk suffice for a file of sensitivities, saying what is needed.
void require_room(const ModelConfig& config, const std::filesystem::path& file, const FisherOptions& options);

/// Writes the sensitivities of a model's weights: the diagonal of the Fisher information (SqueezeLLM; thesis
/// eq. 3.5), the mean over sequences of the squared gradient of a sequence's mean loss per token. Each
/// sequence's gradient is squared by itself and added in F32, in order. Goes forward layer by layer, each
/// with all samples, and then backward, computing every layer again, so that one layer is in memory at a time
/// with its gradients: once for the sum, and once for each thread. What lies between layers is in the folder
/// `file`.work, which an interruption leaves behind for `resume`.
///
/// The file (checkpoint/sensitivity.h) has the names and shapes of the model's matrices in F32. Returns
/// nothing if the work was cancelled. Throws Error(kBadInput) for weights that are not finite, for a loss or
/// a gradient that is not, naming the sample or the tensor, for gradients that are all 0, and if the file
/// exists; Error(kMachine) before starting as require_room() does, and when writing fails.
std::optional<FisherReport> write_sensitivities(const Checkpoint& checkpoint,
                                                const std::vector<std::vector<int32_t>>& samples,
                                                const std::filesystem::path& file,
                                                const FisherOptions& options);

}  // namespace verbatim::train
