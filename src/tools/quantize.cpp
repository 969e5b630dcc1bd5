#include "verbatim/quantize.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/new_folder.h"
#include "base/printable.h"
#include "base/processors.h"
#include "prepare/quantize_model.h"
#include "text/tokenizer.h"

namespace verbatim {

namespace {

QuantizationScheme scheme_with(std::string_view name) {
  const std::optional<QuantizationScheme> scheme = parse_scheme(name);
  if (!scheme || *scheme == QuantizationScheme::kNone) {
    fail(ErrorKind::kUsage, "there is no scheme \"{}\"; known are {}", printable(name),
         fmt::join(quantization_schemes(), ", "));
  }
  return *scheme;
}

std::vector<int32_t> calibration_tokens(const Checkpoint& checkpoint, const std::string& model,
                                        const QuantizeOptions& options) {
  if (checkpoint.tokenizer.kind == TokenizerSource::Kind::kNone) {
    bad_input("{} has no vocabulary, so that a calibration text cannot be read", model);
  }
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(checkpoint.tokenizer);
  std::vector<int32_t> tokens =
      tokenizer->encode(*options.calibration, {.add_bos = true, .parse_special = false});
  if (tokens.size() < 2) bad_input("{} is empty", options.calibration_name);
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(options.calibration_tokens)));
  return tokens;
}

std::string read_me(const QuantizeOptions& options, size_t tokens) {
  return fmt::format(
      "# A model in four bits\n\n"
      "`{}` was made by `verbatim quantize --scheme {}{}`{}. Its matrices are stored in the format int4: "
      "groups of\n"
      "128 weights share a scale. It runs with the recipes w4a16, w4a4, qspec{}:\n\n"
      "    verbatim generate THIS_FOLDER --recipe w4a16 -p 'Once upon a time'\n",
      kPackedName, options.scheme, options.bits == 4 ? "" : fmt::format(" --bits {}", options.bits),
      tokens > 0 ? fmt::format(" with {} tokens of text", tokens) : "",
      options.scheme == "atom" || options.scheme == "quarot" ? " and qspec-" + options.scheme : "");
}

}  // namespace

std::vector<std::string> quantization_schemes() {
  std::vector<std::string> names;
  for (const QuantizationScheme scheme : kQuantizationSchemes) {
    if (scheme != QuantizationScheme::kNone) names.emplace_back(scheme_name(scheme));
  }
  return names;
}

bool needs_calibration(std::string_view scheme) {
  return needs_calibration(scheme_with(scheme));
}

std::optional<QuantizeReport> quantize_model(const std::filesystem::path& model,
                                             const std::filesystem::path& folder,
                                             const QuantizeOptions& options) {
  QuantizeModelOptions quantize;
  quantize.scheme = scheme_with(options.scheme);
  const bool calibrate = needs_calibration(quantize.scheme);
  if (calibrate && !options.calibration) {
    fail(ErrorKind::kUsage, "the scheme {} looks at a calibration text: give it one", options.scheme);
  }
  if (options.calibration_tokens < 1) {
    fail(ErrorKind::kUsage, "{} calibration tokens are too few: at least 1 is needed",
         options.calibration_tokens);
  }
  const Checkpoint checkpoint = open_checkpoint(model);
  if (calibrate) quantize.calibration = calibration_tokens(checkpoint, model.string(), options);
  quantize.bits = options.bits;
  quantize.progress = options.progress;
  quantize.cancelled = options.cancelled;
  NewFolder made(folder);
  ThreadTeam team(options.threads > 0 ? options.threads : hardware_threads());
  const std::optional<Container> packed =
      quantize_model(checkpoint, made.path() / kPackedName, quantize, team);
  if (!packed) return std::nullopt;
  made.write("README.md", read_me(options, quantize.calibration.size()));
  made.keep();
  return QuantizeReport{.bytes = std::ssize(packed->bytes),
                        .calibration_tokens = std::ssize(quantize.calibration),
                        .warnings = packed->header.warnings};
}

}  // namespace verbatim
