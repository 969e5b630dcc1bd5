#include "support/machine_paths.h"

namespace verbatim::test {

std::vector<MachinePath> machine_paths() {
  const CpuFeatures& features = cpu_features();
  std::vector<MachinePath> paths;
  for (const Isa isa : available_isas(features)) {
    const CpuFeatures without = without_dot_products(features);
    if (isa == Isa::kAvx2 && features.avx_vnni) {
      paths.push_back({"avx2", &kernel_table(isa, without)});
      paths.push_back({"avx2_dot_products", &kernel_table(isa, features)});
    } else if (isa == Isa::kAvx512 && features.avx512_bf16 && features.avx512_vnni) {
      paths.push_back({"avx512", &kernel_table(isa, without)});
      paths.push_back({"avx512_dot_products", &kernel_table(isa, features)});
    } else if (isa == Isa::kNeon && features.neon_dotprod) {
      CpuFeatures fewer = features;
      fewer.neon_bf16_i8mm = false;
      paths.push_back({"neon", &kernel_table(isa, without)});
      paths.push_back({"neon_dot_products", &kernel_table(isa, fewer)});
      if (features.neon_bf16_i8mm) paths.push_back({"neon_bf16", &kernel_table(isa, features)});
    } else {
      paths.push_back({std::string(isa_name(isa)), &kernel_table(isa, features)});
    }
  }
  return paths;
}

std::vector<MachinePath> portable_paths() {
  const CpuFeatures& features = cpu_features();
  std::vector<MachinePath> paths = machine_paths();
  for (MachinePath& path : paths) {
    // Only the tables that round in their own way have another beside them.
    if (std::string_view(path.table->rounding) == kPortableRounding) continue;
    path.table = &portable_kernel_table(path.name == "amx" ? Isa::kAmx : Isa::kAvx512, features);
  }
  return paths;
}

}  // namespace verbatim::test
