#pragma once

#include <optional>
#include <string>
#include <vector>

#include "container/container.h"
#include "model/weights.h"

namespace verbatim {

/// The model of a container as a checkpoint without weights: `format` is "vbt", there are no tensors, and the
/// vocabulary is embedded.
Checkpoint checkpoint_of(const Container& container);

/// A model of any form as a checkpoint whose weights are not read: a packed file has no tensors in it, and
/// the tensors of another model stay where they are mapped.
Checkpoint open_without_weights(const std::filesystem::path& path);

/// A store of a matrix, where it lies in the file. Throws Error(kBadInput) when a plane is malformed.
PackedMatrix map_store(const Container& container, const StoredMatrix& matrix, const StoredFormat& store);

/// The weights, where they lie in the file: only vectors are copied. `formats` are the stores to take, in
/// that order; nullopt is whichever store is exact, and none at all means every store. Every offset inside
/// the planes is checked, so that no kernel reads outside them whatever the file holds. Throws
/// Error(kBadInput) when a format is not there, saying what to do, or when a plane is malformed.
DecoderWeights load_weights(const Container& container, const std::vector<std::optional<Format>>& formats);

}  // namespace verbatim
