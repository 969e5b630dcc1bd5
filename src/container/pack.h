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

/// Packs a model into a container at `target`, one matrix at a time, so that it may be larger than the
/// memory. The same model and formats give the same bytes whatever the team. Returns what was written, or
/// nothing after a cancellation, which leaves nothing behind, as a failure does. Throws as pack_weights() and
/// ContainerWriter do.
std::optional<Container> pack_model(const Checkpoint& checkpoint, const std::filesystem::path& target,
                                    const PackModelOptions& options, ThreadTeam& team);

}  // namespace verbatim
