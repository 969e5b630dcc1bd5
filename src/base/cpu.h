#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// The machine paths, from the scalar reference to the highest of x86-64, and that of aarch64. Each has its
/// own kernels (src/kernels/).
enum class Isa { kScalar, kAvx2, kAvx512, kAmx, kNeon };

/// The instruction sets that the processor and the operating system allow this process to use.
struct CpuFeatures {
  bool avx2 = false;         ///< AVX2, FMA and F16C
  bool avx_vnni = false;     ///< AVX2's int8 dot products
  bool avx512 = false;       ///< AVX-512 F, BW, DQ, VL
  bool avx512_vnni = false;  ///< int8 dot products
  bool avx512_bf16 = false;  ///< bf16 dot products
  bool amx = false;   ///< AMX tiles with int8 and bf16, permission granted, and AVX-512 VBMI and VBMI2;
                      ///< implies all of the above
  bool neon = false;  ///< aarch64's vectors
  bool neon_dotprod = false;    ///< its int8 dot products
  bool neon_bf16_i8mm = false;  ///< its bf16 multiply-adds and dot products of unsigned with signed bytes;
                                ///< implies all of aarch64's above
  /// Whether a core that reads memory in ascending order keeps it as busy as one that reads several pages
  /// side by side. Intel's Xeons do not; AMD's Zen 4 was measured to, and Zen 3 and later ones are taken to.
  bool one_stream = false;
  std::string model_name;  ///< e.g. "Intel(R) Xeon(R) Processor", or "unknown"
};

/// The features of this machine. The first call finds them, and asks the operating system for permission to
/// use AMX tiles.
const CpuFeatures& cpu_features();

/// Whether `features` suffice for a machine path.
bool supports(const CpuFeatures& features, Isa isa);

/// All machine paths that `features` allow, lowest first; kScalar is always among them.
std::vector<Isa> available_isas(const CpuFeatures& features);

/// "scalar", "avx2", "avx512", "amx" or "neon".
std::string_view isa_name(Isa isa);

/// The machine path with a name, the inverse of isa_name(). Throws Error(kUsage) for any other name.
Isa parse_isa(std::string_view name);

/// The machine path to use: the one named in the environment variable VERBATIM_ISA if that is set, else the
/// highest that is available. The name may be that of AVX2, AVX-512 or NEON with "-plain" behind it. Throws
/// Error(kUsage) if the name is unknown and Error(kMachine) if this machine lacks the path.
Isa preferred_isa();

/// The features to choose the kernels of preferred_isa() by: cpu_features(), but without dot products where
/// the path that VERBATIM_ISA names has "-plain" behind it.
CpuFeatures preferred_features();

/// The features without the dot products of AVX2, AVX-512 and NEON, and so without AMX.
CpuFeatures without_dot_products(CpuFeatures features);

}  // namespace verbatim
