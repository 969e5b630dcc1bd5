#pragma once

#include <string>

#include "accelerator/paper/comparison.h"
#include "accelerator/paper/sensitivity.h"
#include "verbatim/accelerator.h"

namespace verbatim::accelerator {

/// A page in HTML, whole in itself, that shows a simulation and the comparison with the paper.
std::string page_of(const Hardware& hardware, const Dram& dram, const Shape& shape,
                    const Simulation& simulation, const Comparison& comparison,
                    const std::vector<Sensitivity>& sensitivities);

}  // namespace verbatim::accelerator
