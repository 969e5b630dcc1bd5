#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// The machine paths, from the plain reference upwards. Each has its own kernels (src/kernels/).
enum class Isa { kScalar, kAvx2, kAvx512, kAmx };

/// What the processor and the operating system allow this process to use.
struct CpuFeatures {
  bool avx2 = false;         ///< AVX2, FMA and F16C
  bool avx512 = false;       ///< AVX-512 F, BW, DQ, VL
  bool avx512_vnni = false;  ///< int8 dot products
  bool avx512_bf16 = false;  ///< bf16 dot products
  bool amx = false;        ///< AMX tiles with int8 and bf16, permission granted, and AVX-512 VBMI and VBMI2;
                           ///< implies all of the above
  std::string model_name;  ///< e.g. "Intel(R) Xeon(R) Processor", or "unknown"
};

/// The features of this machine, found once. Asks the operating system for the use of AMX tiles.
const CpuFeatures& cpu_features();

/// Whether `features` suffice for the path.
bool supports(const CpuFeatures& features, Isa isa);

/// All paths that `features` allow, lowest first; kScalar is always among them.
std::vector<Isa> available_isas(const CpuFeatures& features);

/// "scalar", "avx2", "avx512" or "amx".
std::string_view isa_name(Isa isa);

/// The inverse of isa_name. Throws Error(kUsage) for any other name.
Isa parse_isa(std::string_view name);

/// The path to use: the one named in the environment variable VERBATIM_ISA if set, else the highest
/// available. Throws Error(kUsage) if the name is unknown and Error(kMachine) if this machine lacks it.
Isa preferred_isa();

}  // namespace verbatim
