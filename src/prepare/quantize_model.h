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

struct QuantizeModelOptions {
  QuantizationScheme scheme = QuantizationScheme::kRtn;
  /// The calibration text of AWQ, GPTQ and Atom, as tokens. Other schemes do not use it.
  std::vector<int32_t> calibration = {};
  /// The format that the prepared weights are rounded to. `f32` does not round any but Atom's outliers, so
  /// that tests can tell preparing from rounding.
  Format format = Format::kInt4;
  /// 4, or 3 for weights that use eight of the sixteen levels of `int4` alone and take as much room.
  int bits = 4;
  /// Called with the name of the current stage and the fraction of it that is done.
  std::function<void(const char* what, double fraction)> progress = {};
  std::function<bool()> cancelled = {};  ///< called between matrices; true ends the work
};

/// Whether a scheme needs a calibration text.
bool needs_calibration(QuantizationScheme scheme);

/// Writes a container at `target` with every matrix of the model in `int4`, prepared by the scheme (QSpec
/// §4). Only one matrix is in memory at a time; for QuaRot the embedding, too, for GPTQ all rounded matrices,
/// and during calibration the whole model. The same model, scheme and text give the same bytes on the same
/// machine with any number of threads; another instruction set may round differently while it evaluates the
/// calibration text. Returns nothing when cancelled. A cancellation or a failure leaves no file behind.
/// Throws Error(kUsage) if a calibration text is needed and there is none, and for bits that there are not,
/// as Atom has no 3; Error(kMachine) if GPTQ would not have the memory for the text; and what pack_model()
/// throws.
std::optional<Container> quantize_model(const Checkpoint& checkpoint, const std::filesystem::path& target,
                                        const QuantizeModelOptions& options, ThreadTeam& team);

}  // namespace verbatim
