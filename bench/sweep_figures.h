#pragma once

#include <string>
#include <vector>

#include "app/bench_decode_runs.h"
#include "bench/plot.h"

namespace verbatim::bench {

/// A recipe with one setting of its first level's stop rule and of its acceptance, and how it did.
struct SweepPoint {
  int32_t length = 0;
  float threshold = 0;
  float rollback = 0;  ///< `bild` only
  app::DecodeResult result;
};

struct SweepFigure {
  std::string file;  ///< its name in the folder
  Plot plot;
};

/// The figures that the points of a sweep give, in which `recipe` and `subtitle` are named: acceptance rate
/// and speedup against the draft length with a curve for each threshold, and against the threshold with a
/// curve for each length (SPEQ, figure 9); for lossy recipes quality against speedup with a curve for each
/// rollback (thesis, figures 4.4 and C.4). What does not vary has no axis. Where rollbacks vary, the first
/// kind shows the first of them.
std::vector<SweepFigure> sweep_figures(const Recipe& recipe, const std::string& subtitle,
                                       const std::vector<SweepPoint>& points, const app::DecodeResult& plain);

}  // namespace verbatim::bench
