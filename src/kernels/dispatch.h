#pragma once

#include "base/cpu.h"
#include "kernels/kernel_table.h"

namespace verbatim {

/// The kernels in use: those of preferred_isa(), unless select_kernels() has chosen others. They are portable
/// ones if use_portable_kernels() (verbatim/machine.h) came first, or if portable_wanted(). The first call
/// throws what preferred_isa() and portable_wanted() throw.
const KernelTable& kernels();

/// The kernels of a machine path for a processor with these features: the path avx512 has a second table for
/// VNNI and BF16, neon two more for dot products and for BF16. Throws Error(kMachine) if `features` do not
/// support the path.
const KernelTable& kernel_table(Isa isa, const CpuFeatures& features);

/// The fastest kernels of a machine path whose rounding is kPortableRounding, as are all of the scalar
/// path's, AVX2's, NEON's and AVX-512's without BF16 dot products. Throws as kernel_table() does.
const KernelTable& portable_kernel_table(Isa isa, const CpuFeatures& features);

/// Whether the environment variable VERBATIM_PORTABLE asks for portable kernels: it is 1, and not 0 or empty.
/// Throws Error(kUsage) if it is anything else.
bool portable_wanted();

/// Makes kernels() return another table from now on, for tests and benchmarks that compare paths. Packed
/// weights serve every path, so a loaded model stays valid. `table` must outlive its use. Must not be called
/// while another thread computes.
void select_kernels(const KernelTable& table);

}  // namespace verbatim
