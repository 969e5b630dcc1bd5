#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

namespace verbatim {

/// How much larger a model is to become. The larger model computes the same function as the model, so that
/// speed can be measured at a realistic size with the text of a trained model (docs/inflate.md).
struct InflateOptions {
  /// 1, 2, 4 or 8: how often every channel of the residual stream, every feed-forward channel and every head
  /// is there. The weights that read the copies are divided by it.
  int32_t width = 1;
  /// Layers of the result, at least the model's; 0: the model's. The others add nothing to the residual
  /// stream.
  int32_t depth = 0;
  /// A file holds at most this many bytes of tensors, unless one tensor alone has more.
  uint64_t shard_bytes = uint64_t{4} << 30;
  /// Called now and then with the fraction done, from 0 to 1.
  std::function<void(double)> progress = {};
  /// Asked now and then, if given: true ends the work, and nothing is left of it.
  std::function<bool()> cancelled = {};
};

struct InflateReport {
  int64_t parameters = 0;
  uint64_t bytes = 0;  ///< of all tensors
  int32_t files = 0;   ///< that hold them
};

/// Writes the larger model into a new folder in Hugging Face layout; nothing when it was cancelled. The
/// folder appears when it is complete or not at all.
///
/// Throws Error(kBadInput) when the model cannot be read or is no folder with safetensors, when the folder is
/// there already and not empty, when the depth is less than the model's, or when a weight cannot be divided
/// exactly; Error(kMachine) when the disk is full or cannot be written.
std::optional<InflateReport> inflate(const std::filesystem::path& model, const std::filesystem::path& folder,
                                     const InflateOptions& options);

}  // namespace verbatim
