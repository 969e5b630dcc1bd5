#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// How a model is quantized to four bits.
struct QuantizeOptions {
  /// The scheme that prepares the weights: one of quantization_schemes().
  std::string scheme = "rtn";
  /// Bits of a weight: 4, or 3, with which weights keep to eight of the sixteen levels of four bits and take
  /// as much room. "atom" has 4 alone.
  int32_t bits = 4;
  /// A text like the texts to come, in UTF-8, for schemes that look at one; other schemes do not use it.
  std::optional<std::string> calibration = {};
  /// The name of the calibration text in error messages.
  std::string calibration_name = "the calibration text";
  /// How many tokens of the calibration text are used, from its beginning; at least 1.
  int64_t calibration_tokens = 4096;
  /// Threads to work with; 0 takes one for every core that this process may use. Changes no byte of the
  /// result.
  int32_t threads = 0;
  /// Called now and then with the name of the current stage and the fraction of it that is done, from 0 to 1,
  /// on the calling thread.
  std::function<void(const char* stage, double fraction)> progress = {};
  /// Asked between matrices; true ends the work and leaves nothing behind.
  std::function<bool()> cancelled = {};
};

/// A quantized model that was written.
struct QuantizeReport {
  int64_t bytes = 0;                  ///< the size of the packed file in the folder
  int64_t calibration_tokens = 0;     ///< how many tokens of the calibration text were used
  std::vector<std::string> warnings;  ///< things about the model that deserve attention, a line each
};

/// The names of the schemes: "rtn", which rounds to nearest, "awq", "gptq", "atom" and "quarot"
/// (docs/quantize.md).
std::vector<std::string> quantization_schemes();

/// Whether a scheme looks at a calibration text. Throws Error(kUsage) if there is no scheme of this name.
bool needs_calibration(std::string_view scheme);

/// Writes a directory in Hugging Face layout or a .gguf file into a new folder as a packed file of weights in
/// the format `int4`, prepared by a scheme for activations of four bits, and a README.md that says how it was
/// made. The same model, scheme and text give the same bytes on the same machine. Returns nothing if the work
/// was cancelled. The folder appears when it is complete, or not at all.
///
/// Throws Error(kUsage) when there is no scheme of the name or none in so many bits, or the scheme looks at a
/// text and none is given;
/// Error(kBadInput) when the model is malformed or is packed already, when it has no vocabulary to read the
/// text with, when the text is no UTF-8 or has no tokens, and when the folder is there already and not empty;
/// Error(kMachine) when writing fails, or memory does not suffice for what "gptq" keeps of the text.
std::optional<QuantizeReport> quantize_model(const std::filesystem::path& model,
                                             const std::filesystem::path& folder,
                                             const QuantizeOptions& options = {});

}  // namespace verbatim
