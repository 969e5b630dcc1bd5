#include "verbatim/convert.h"

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf.h"
#include "prepare/convert.h"
#include "verbatim/pack.h"

namespace verbatim {

namespace {

std::string kind_of_result(const std::filesystem::path& target, const ConvertOptions& options) {
  const std::string& to = options.to;
  if (to.empty()) {
    const std::string end = target.extension().string();
    return end == ".gguf" ? "gguf" : end == ".vbt" ? "vbt" : "folder";
  }
  if (to == "folder" || to == "gguf" || to == "vbt") return to;
  fail(ErrorKind::kUsage, "a model cannot be converted to \"{}\"; known are folder, gguf and vbt",
       printable(to));
}

std::optional<DType> widened_type(const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (name == "f32") return DType::kF32;
  if (name == "bf16") return DType::kBF16;
  fail(ErrorKind::kUsage, "matrices cannot be widened to \"{}\"; f32 and bf16 are known", printable(name));
}

std::optional<ConvertReport> convert_to_packed(const std::filesystem::path& model,
                                               const std::filesystem::path& target,
                                               const ConvertOptions& options) {
  const std::optional<PackReport> packed = pack_model(model, target,
                                                      {.formats = {"full"},
                                                       .threads = options.threads,
                                                       .progress = options.progress,
                                                       .cancelled = options.cancelled});
  if (!packed) return std::nullopt;
  return ConvertReport{.kind = "vbt", .bytes = packed->bytes, .warnings = packed->warnings};
}

}  // namespace

std::optional<ConvertReport> convert_model(const std::filesystem::path& model,
                                           const std::filesystem::path& target,
                                           const ConvertOptions& options) {
  const std::string kind = kind_of_result(target, options);
  const ConvertModelOptions convert{
      .widen = widened_type(options.widen), .progress = options.progress, .cancelled = options.cancelled};
  if (convert.widen && kind != "folder") {
    fail(ErrorKind::kUsage, "only matrices of a GGUF file that becomes a folder are widened");
  }
  if (kind == "vbt") return convert_to_packed(model, target, options);
  const Checkpoint checkpoint = open_checkpoint(model);
  const bool from_gguf = checkpoint.format == "gguf";
  if (from_gguf == (kind == "gguf")) {
    bad_input("{} is {} already; name a result of another kind, or copy it", model.string(),
              from_gguf ? "a GGUF file" : "a folder");
  }
  const std::optional<ConvertedModel> converted =
      from_gguf ? convert_to_folder(checkpoint, open_gguf(model), target, convert)
                : convert_to_gguf(checkpoint, target, convert);
  if (!converted) return std::nullopt;
  return ConvertReport{.kind = kind,
                       .bytes = converted->bytes,
                       .widened = converted->widened,
                       .rounded = converted->rounded,
                       .warnings = converted->warnings};
}

}  // namespace verbatim
