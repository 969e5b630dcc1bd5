#include "verbatim/pack.h"

#include <algorithm>

#include "base/error.h"
#include "base/processors.h"
#include "checkpoint/sensitivity.h"
#include "container/pack.h"
#include "formats/squeeze.h"
#include "model/outlier_magnitudes.h"
#include "model/sensitivity_origin.h"

namespace verbatim {

namespace {

void refuse_repetition(const std::vector<std::string>& formats) {
  for (auto format = formats.begin(); format != formats.end(); ++format) {
    if (std::find(formats.begin(), format, *format) == format) continue;
    fail(ErrorKind::kUsage, "the format {} is asked for twice: a file holds it once", *format);
  }
}

/// Refuses shares of a sparse part, and sensitivities, where no format has one.
void refuse_shares_without_use(const PackOptions& options, const LoadOptions& load) {
  const PackOptions usual;
  const bool changed = options.sparse_sensitive != usual.sparse_sensitive ||
                       options.sparse_outliers != usual.sparse_outliers || options.outliers_across_model ||
                       !options.sensitivities.empty();
  const auto sparse = [](const std::optional<Format>& format) { return format && has_sparse_part(*format); };
  if (!changed || std::ranges::any_of(load.formats, sparse)) return;
  fail(ErrorKind::kUsage,
       "sensitivities and shares of a sparse part are about squeeze3 and squeeze4: name one of these among "
       "the "
       "formats");
}

}  // namespace

std::optional<PackReport> pack_model(const std::filesystem::path& model, const std::filesystem::path& file,
                                     const PackOptions& options) {
  refuse_repetition(options.formats);
  PackModelOptions pack;
  set_formats(pack.load, options.formats);
  pack.load.progress = options.progress;
  pack.load.sparse = {.sensitive = options.sparse_sensitive, .outliers = options.sparse_outliers};
  pack.cancelled = options.cancelled;
  refuse_shares_without_use(options, pack.load);
  const Checkpoint checkpoint = open_checkpoint(model);
  std::optional<SensitivityFile> sensitivities;
  if (!options.sensitivities.empty()) {
    sensitivities = open_sensitivities(options.sensitivities);
    require_same_model(checkpoint, *sensitivities);
    pack.load.sensitivities = &*sensitivities;
  }
  ThreadTeam team(options.threads > 0 ? options.threads : hardware_threads());
  if (options.outliers_across_model) {
    pack.load.outlier_magnitudes = outlier_magnitudes(checkpoint, pack.load, options.cancelled, team);
  }
  const std::optional<Container> packed = pack_model(checkpoint, file, pack, team);
  if (!packed) return std::nullopt;
  PackReport report{.bytes = std::ssize(packed->bytes), .formats = {}, .warnings = packed->header.warnings};
  for (const Format format : packed->formats()) report.formats.emplace_back(format_name(format));
  return report;
}

}  // namespace verbatim
