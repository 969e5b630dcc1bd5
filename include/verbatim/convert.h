#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace verbatim {

/// How a model is converted.
struct ConvertOptions {
  /// What to make: "folder", "gguf" or "vbt". Empty: what the name of the result says, `.gguf`, `.vbt` or any
  /// other, which is a folder.
  std::string to = {};
  /// What tensors become whose type a folder cannot hold, as Q4_K: "f32", which holds every one exactly, or
  /// "bf16", which rounds. Empty: they are refused.
  std::string widen = {};
  /// Threads to work with; 0 takes one for every core that this process may use. Changes no byte.
  int32_t threads = 0;
  /// Called now and then with the fraction done, from 0 to 1, on the calling thread.
  std::function<void(double)> progress = {};
  /// Asked between tensors; true ends the work and leaves nothing behind.
  std::function<bool()> cancelled = {};
};

/// A converted model that was written.
struct ConvertReport {
  std::string kind;                   ///< what was made: "folder", "gguf" or "vbt"
  int64_t bytes = 0;                  ///< the size of its tensors, or of the packed file
  int64_t widened = 0;                ///< the number of tensors that became another type
  int64_t rounded = 0;                ///< weights of these that the other type does not hold exactly
  std::vector<std::string> warnings;  ///< what the new files cannot say, a line each
};

/// Converts a model: a folder in Hugging Face layout into a GGUF file, a GGUF file into such a folder, and
/// either into a packed file in its own formats. Weights keep every bit, and what the new layout cannot say
/// is refused. The result appears when it is complete, or not at all. Returns nothing if the work was
/// cancelled.
///
/// Throws Error(kBadInput) when the model is malformed, when the other layout has no like of its family, a
/// tensor, a setting or its vocabulary, and when something of the result's name is there already;
/// Error(kUsage) for names in the options that mean nothing; Error(kMachine) when writing fails.
std::optional<ConvertReport> convert_model(const std::filesystem::path& model,
                                           const std::filesystem::path& target,
                                           const ConvertOptions& options = {});

}  // namespace verbatim
