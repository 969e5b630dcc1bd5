#pragma once

#include <string>

#include "accelerator/paper/comparison.h"
#include "accelerator/paper/sensitivity.h"
#include "accelerator/paper/surface.h"
#include "verbatim/accelerator.h"

namespace verbatim::accelerator {

/// What a page says beside a simulation.
struct PaperPart {
  Comparison comparison;
  std::vector<Surface> surfaces;
  std::vector<Sensitivity> sensitivities;
};

/// A page in HTML, whole in itself, that shows a simulation and the comparison with the paper.
std::string page_of(const Hardware& hardware, const Dram& dram, const Shape& shape,
                    const Simulation& simulation, const PaperPart& paper);

/// The same without a simulation.
std::string page_of(const PaperPart& paper);

}  // namespace verbatim::accelerator
