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
  std::function<bool()> cancelled;    ///< called between matrices, if given; true ends the work
  size_t alignment = kPageAlignment;  ///< the alignment of planes
};

/// The contents of a container besides the vocabulary.
struct PackParts {
  ModelConfig config;
  TensorView embedding;
  // These are called once for each matrix and each vector of the config, and add the names of tensors
  // that hold NaN or infinity to `not_finite`.
  std::function<LinearWeight(const MatrixSpec&, std::vector<std::string>& not_finite)> matrix;
  std::function<Buffer<float>(const VectorSpec&, std::vector<std::string>& not_finite)> vector;
};

/// Writes a container at `target` from parts, with the vocabulary of the checkpoint. Of options.load only
/// `progress` is used. In all else it behaves as pack_model().
std::optional<Container> pack_parts(const Checkpoint& checkpoint, const PackParts& parts,
                                    const std::filesystem::path& target, const PackModelOptions& options);

/// Packs a model into a container at `target`, one matrix at a time, so that the model may be larger than the
/// memory. The same model and formats give the same bytes with any number of threads. Returns the container
/// that was written, or nothing when cancelled. A cancellation or a failure leaves no file behind. Throws
/// what pack_weights() and ContainerWriter throw.
std::optional<Container> pack_model(const Checkpoint& checkpoint, const std::filesystem::path& target,
                                    const PackModelOptions& options, ThreadTeam& team);

}  // namespace verbatim
