#include "kernels/dispatch.h"

#include <atomic>

#include "base/error.h"
#include "kernels/isa_tables.h"

namespace verbatim {

namespace {

std::atomic<const KernelTable*>& selection() {
  static std::atomic<const KernelTable*> table = &kernel_table(preferred_isa(), cpu_features());
  return table;
}

}  // namespace

const KernelTable& kernels() {
  return *selection().load(std::memory_order_relaxed);
}

void select_kernels(const KernelTable& table) {
  selection().store(&table, std::memory_order_relaxed);
}

const KernelTable& kernel_table(Isa isa, const CpuFeatures& features) {
  if (!supports(features, isa)) {
    fail(ErrorKind::kMachine, "this machine lacks the {} instruction set", isa_name(isa));
  }
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kScalar:
      break;
    case Isa::kAvx2:
      return avx2::table();
    case Isa::kAvx512:
      return features.avx512_vnni && features.avx512_bf16 ? avx512::vnni_bf16_table() : avx512::table();
    case Isa::kAmx:
      return amx::table();
  }
#endif
  return scalar::table();
}

}  // namespace verbatim
