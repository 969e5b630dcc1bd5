#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "base/thread_team.h"
#include "checkpoint/checkpoint.h"
#include "container/container.h"

namespace verbatim {

struct QuantizeOptions {
  QuantizationScheme scheme = QuantizationScheme::kRtn;
  /// The text that AWQ and Atom look at, as tokens; not looked at for the others.
  std::vector<int32_t> calibration = {};
  /// What the prepared weights are rounded to. `f32` leaves them as they are but for Atom's outliers, so that
  /// tests can tell preparing from rounding.
  Format format = Format::kInt4;
  /// Told what is being done and the fraction of that done.
  std::function<void(const char* what, double fraction)> progress = {};
  std::function<bool()> cancelled = {};  ///< asked between matrices: true ends the work
};

/// Whether a scheme needs a calibration text.
bool needs_calibration(QuantizationScheme scheme);

/// Writes a container at `target` with every matrix of the model in `int4`, prepared by the scheme (QSpec
/// §4). One matrix is in memory at a time, for QuaRot the embedding, too, and for calibration the model. The
/// same model, scheme and text give the same bytes on the same machine, whatever the team; other instruction
/// sets may read the calibration text with other roundings. Returns nothing after a cancellation, which
/// leaves nothing behind, as a failure does. Throws Error(kUsage) without a calibration text where one is
/// needed, and otherwise as pack_model() does.
std::optional<Container> quantize_model(const Checkpoint& checkpoint, const std::filesystem::path& target,
                                        const QuantizeOptions& options, ThreadTeam& team);

}  // namespace verbatim
