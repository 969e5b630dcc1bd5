#pragma once

#include "base/cpu.h"
#include "kernels/kernel_table.h"

namespace verbatim {

/// The kernels in use. At first those of preferred_isa(), found on the first call.
const KernelTable& kernels();

/// The kernels for a machine path given what the processor has (AVX-512 differs with VNNI and BF16). Throws
/// Error(kMachine) when `features` do not support the path.
const KernelTable& kernel_table(Isa isa, const CpuFeatures& features);

/// Makes kernels() return another table from now on, for tests and benchmarks that compare paths. Packed
/// weights serve every path, so a loaded model stays valid. `table` must outlive its use. Not while another
/// thread computes.
void select_kernels(const KernelTable& table);

}  // namespace verbatim
