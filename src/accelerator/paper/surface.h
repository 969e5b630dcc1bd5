#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "accelerator/decode.h"

namespace verbatim::accelerator {

/// What drafts up to a length and down to a threshold came to.
struct MeasuredDrafting {
  int64_t length = 0;         ///< the most tokens of a draft
  double threshold = 0;       ///< a draft ends at a token less probable than this
  std::vector<Steps> traces;  ///< one for each prompt
};

/// A measurement of drafts by length and threshold, for figure 9 of SPEQ.
struct ThresholdMeasurement {
  std::string conditions;  ///< with which model and prompts, as the file says it
  std::vector<MeasuredDrafting> drafting;
};

/// Reads docs/results/simulated-clock/draft-thresholds.json. Throws Error(kBadInput), naming `where`, for
/// what is missing or odd.
ThresholdMeasurement parse_thresholds(std::string_view json, const std::string& where);

/// The measurement that is compiled in.
const ThresholdMeasurement& measured_thresholds();

/// A point of figure 9.
struct SurfacePoint {
  int64_t length = 0;
  double threshold = 0;
  double acceptance = 0;       ///< share of the drafted tokens
  double tokens_per_step = 0;  ///< those accepted and one more
  double speedup = 0;          ///< over FP16, simulated
};

/// Figure 9 for one model.
struct Surface {
  std::string model;
  std::string conditions;
  std::vector<SurfacePoint> points;
};

/// The simulated speed of a model by the length of drafts and the threshold, with the measured acceptance,
/// which is that of another model than the shape's. The traces are decoded one after the other.
Surface surface_of(const Hardware& hardware, const Dram& dram, const Shape& shape,
                   const ThresholdMeasurement& measurement = measured_thresholds());

/// The surfaces of the two models that figure 9 shows.
std::vector<Surface> figure_nine_surfaces(const Hardware& hardware, const Dram& dram);

/// A surface as a table of speedups; NAN where it has no point.
struct SurfaceTable {
  std::vector<int64_t> lengths;             ///< of the columns
  std::vector<double> thresholds;           ///< of the rows
  std::vector<std::vector<double>> values;  ///< [thresholds][lengths]
};
SurfaceTable table_of(const Surface& surface);

/// A surface as text: a line for each threshold, a column for each length.
std::string text_of(const Surface& surface);

}  // namespace verbatim::accelerator
