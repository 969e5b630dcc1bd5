#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "fisher.h"

namespace verbatim::train {

/// Writes a file of sensitivities whose measure are the activations, not the gradients (thesis B.2, as GPTQ
/// and AWQ weigh): the sensitivity of a weight is the mean square of its input over all tokens of the
/// sequences, the same in every row of a matrix. The engine evaluates the model in its own precision, with
/// all of it in memory. Of the options, `resume` has no meaning.
///
/// The file is like that of write_sensitivities(). Returns nothing if the work was cancelled, which leaves
/// nothing behind. Throws Error(kBadInput) for activations that are not finite, naming a tensor, and if the
/// file exists; Error(kMachine) when writing fails.
std::optional<FisherReport> write_activations(const Checkpoint& checkpoint,
                                              const std::vector<std::vector<int32_t>>& samples,
                                              const std::filesystem::path& file,
                                              const FisherOptions& options);

}  // namespace verbatim::train
