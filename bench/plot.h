#pragma once

#include "accelerator/report/plot.h"

namespace verbatim::bench {

// The figures of the laboratory are those of the accelerator's report.
using accelerator::Plot;
using accelerator::PlotPoint;
using accelerator::PlotSeries;
using accelerator::round_ticks;
using accelerator::svg;

}  // namespace verbatim::bench
