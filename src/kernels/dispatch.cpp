#include "kernels/dispatch.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "kernels/isa_tables.h"
#include "verbatim/machine.h"

namespace verbatim {

namespace {

/// The kernels in use; null until the first use.
std::atomic<const KernelTable*> selection = nullptr;

/// Selects a table unless one is in use. Returns the one that is.
const KernelTable& select_first(const KernelTable& table) {
  const KernelTable* before = nullptr;
  return selection.compare_exchange_strong(before, &table, std::memory_order_relaxed) ? table : *before;
}

[[gnu::noinline]] const KernelTable& select_preferred() {
  const CpuFeatures features = preferred_features();
  const Isa isa = preferred_isa();
  return select_first(portable_wanted() ? portable_kernel_table(isa, features) : kernel_table(isa, features));
}

}  // namespace

const KernelTable& kernels() {
  const KernelTable* const table = selection.load(std::memory_order_relaxed);
  return table != nullptr ? *table : select_preferred();
}

void select_kernels(const KernelTable& table) {
  selection.store(&table, std::memory_order_relaxed);
}

bool portable_wanted() {
  const char* const text = std::getenv("VERBATIM_PORTABLE");
  const std::string_view value = text == nullptr ? "" : text;
  if (value == "1") return true;
  if (value.empty() || value == "0") return false;
  fail(ErrorKind::kUsage, "VERBATIM_PORTABLE is \"{}\"; it can be 1 or 0", value);
}

void use_portable_kernels() {
  const KernelTable& used = select_first(portable_kernel_table(preferred_isa(), preferred_features()));
  if (std::string_view(used.rounding) == kPortableRounding) return;
  fail(ErrorKind::kUsage,
       "the kernels \"{}\" have been used already, which are not portable: choose portable ones before "
       "loading a model",
       used.name);
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
      return features.avx_vnni ? avx2::vnni_table() : avx2::table();
    case Isa::kAvx512:
      return features.avx512_vnni && features.avx512_bf16 ? avx512::vnni_bf16_table() : avx512::table();
    case Isa::kAmx:
      return amx::table();
    case Isa::kNeon:
      break;
  }
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) {
    if (features.neon_bf16_i8mm) return neon::bf16_i8mm_table();
    return features.neon_dotprod ? neon::dotprod_table() : neon::table();
  }
#endif
  return scalar::table();
}

const KernelTable& portable_kernel_table(Isa isa, const CpuFeatures& features) {
  const KernelTable& fastest = kernel_table(isa, features);
  if (std::string_view(fastest.rounding) == kPortableRounding) return fastest;
#if defined(__x86_64__)
  return isa == Isa::kAmx ? amx::portable_table() : avx512::portable_vnni_bf16_table();
#else
  return fastest;
#endif
}

}  // namespace verbatim
