#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "container/container.h"
#include "model/weights.h"

namespace verbatim {

struct PackModelOptions {
  LoadOptions load;                   ///< formats, sensitivities and progress, as for packing in memory
  std::function<bool()> cancelled;    ///< asked between matrices, if given: true ends the work
  size_t alignment = kPageAlignment;  ///< of planes
};

/// What goes into a container besides the vocabulary.
struct PackParts {
  ModelConfig config;
  TensorView embedding;
  /// Called once for each matrix and vector of the config; may add warnings.
  std::function<LinearWeight(const MatrixSpec&, std::vector<std::string>& warnings)> matrix;
  std::function<Buffer<float>(const VectorSpec&, std::vector<std::string>& warnings)> vector;
};

/// Writes a container at `target` from parts, with the vocabulary of the checkpoint. `load` of the options
/// counts for progress alone. Otherwise as pack_model().
std::optional<Container> pack_parts(const Checkpoint& checkpoint, const PackParts& parts,
                                    const std::filesystem::path& target, const PackModelOptions& options);

/// Packs a model into a container at `target`, one matrix at a time, so that it may be larger than the
/// memory. The same model and formats give the same bytes whatever the team. Returns what was written, or
/// nothing after a cancellation, which leaves nothing behind, as a failure does. Throws as pack_weights() and
/// ContainerWriter do.
std::optional<Container> pack_model(const Checkpoint& checkpoint, const std::filesystem::path& target,
                                    const PackModelOptions& options, ThreadTeam& team);

}  // namespace verbatim
