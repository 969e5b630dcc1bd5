#pragma once

#include <string>
#include <vector>

#include "formats/format.h"
#include "kernels/dispatch.h"

namespace verbatim::test {

/// A machine path that this machine can run: an instruction set, AVX2, AVX-512 and NEON with and without
/// their dot products.
struct MachinePath {
  std::string name;  ///< fit for a test's name: "scalar", "avx2", "avx2_dot_products", "avx512",
                     ///< "avx512_dot_products", "amx", "neon", "neon_dot_products", "neon_bf16"
  const KernelTable* table;
};

/// All of them, the scalar reference first.
std::vector<MachinePath> machine_paths();

/// The same paths, each with its fastest portable kernels.
std::vector<MachinePath> portable_paths();

/// kernels() are those of a table while the object lives.
class SelectedKernels {
 public:
  explicit SelectedKernels(const KernelTable& table) : before_(&kernels()) { select_kernels(table); }
  ~SelectedKernels() { select_kernels(*before_); }
  SelectedKernels(const SelectedKernels&) = delete;
  SelectedKernels& operator=(const SelectedKernels&) = delete;

 private:
  const KernelTable* before_;
};

/// For INSTANTIATE_TEST_SUITE_P over machine_paths().
inline std::string path_name(const auto& info) {
  return info.param.name;
}
/// For parameters that are tuples of a machine path and a format.
inline std::string path_and_format(const auto& info) {
  std::string name = std::get<0>(info.param).name + "_";
  for (const char c : format_name(std::get<1>(info.param))) name += c == '-' ? '_' : c;
  return name;
}
inline void PrintTo(const MachinePath& path, std::ostream* out) {
  *out << path.name;
}

}  // namespace verbatim::test
