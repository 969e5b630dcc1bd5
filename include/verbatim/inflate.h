#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

namespace verbatim {

/// How a model is enlarged. The larger model computes the same function as the smaller one, so that speed can
/// be measured at a realistic size with the text of a trained model (docs/inflate.md).
struct InflateOptions {
  /// The number of copies of every channel of the residual stream, every feed-forward channel and every head:
  /// 1, 2, 4 or 8. The weights that read the copies are divided by it.
  int32_t width = 1;
  /// The number of layers of the larger model, at least as many as the model has; 0: as many. Added layers
  /// contribute nothing to the residual stream.
  int32_t depth = 0;
  /// The most bytes of tensors in a file, unless a single tensor has more.
  uint64_t shard_bytes = uint64_t{4} << 30;
  /// Called repeatedly with the fraction done, from 0 to 1.
  std::function<void(double)> progress = {};
  /// Called repeatedly, if given; true ends the work, and leaves no file behind.
  std::function<bool()> cancelled = {};
};

/// An enlarged model that was written.
struct InflateReport {
  int64_t parameters = 0;  ///< the number of its weights
  uint64_t bytes = 0;      ///< the size of all tensors
  int32_t files = 0;       ///< the number of files that hold the tensors
};

/// Writes the larger model into a new folder in Hugging Face layout. The folder appears when it is complete,
/// or not at all. Returns nothing if the work was cancelled.
///
/// Throws Error(kBadInput) when the model cannot be read or is no folder with safetensors, when the folder is
/// there already and not empty, when the depth is less than the model's, or when a weight cannot be divided
/// exactly; Error(kMachine) when the disk is full or cannot be written.
std::optional<InflateReport> inflate_model(const std::filesystem::path& model,
                                           const std::filesystem::path& folder,
                                           const InflateOptions& options);

}  // namespace verbatim
