#pragma once

#include "base/cpu.h"
#include "kernels/kernel_table.h"

namespace verbatim {

/// The kernels in use: those of preferred_isa(), unless select_kernels() has chosen others.
const KernelTable& kernels();

/// The kernels of a machine path for a processor with these features: the path avx512 has a second table for
/// VNNI and BF16. Throws Error(kMachine) if `features` do not support the path.
const KernelTable& kernel_table(Isa isa, const CpuFeatures& features);

/// Makes kernels() return another table from now on, for tests and benchmarks that compare paths. Packed
/// weights serve every path, so a loaded model stays valid. `table` must outlive its use. Must not be called
/// while another thread computes.
void select_kernels(const KernelTable& table);

}  // namespace verbatim
