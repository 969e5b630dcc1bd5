#include "base/cpu.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace verbatim {

namespace {

std::string read_model_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown";
}

#if defined(__x86_64__)

constexpr bool bit(unsigned word, int index) {
  return (word >> index & 1u) != 0;
}

/// The register states that the operating system saves (XCR0).
uint64_t enabled_states() {
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

/// Linux hands out the tile registers only to processes that ask (Documentation/x86/xstate.rst).
bool request_amx_permission() {
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureXtiledata = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

/// The family of a processor of AMD, 0x17 for Zen 1 and 2 and 0x19 for Zen 3 and 4; 0 for other makers'.
unsigned family_of_amd() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0 || b != signature_AMD_ebx) return 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return 0;
  return (a >> 8 & 0xf) + (a >> 20 & 0xff);
}

CpuFeatures detect() {
  CpuFeatures features;
  features.model_name = read_model_name();
  features.one_stream = family_of_amd() >= 0x19;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return features;
  const bool fma = bit(c, 12);
  const bool osxsave = bit(c, 27);
  const bool f16c = bit(c, 29);
  if (!osxsave) return features;
  const uint64_t states = enabled_states();
  const bool ymm = (states & 0x6) == 0x6;
  const bool zmm = (states & 0xe6) == 0xe6;
  const bool tiles = (states & 0x60000) == 0x60000;

  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return features;
  features.avx2 = ymm && fma && f16c && bit(b, 5);
  features.avx512 = features.avx2 && zmm && bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31);
  features.avx512_vnni = features.avx512 && bit(c, 11);
  const bool byte_permutations = bit(c, 1) && bit(c, 6);
  const bool amx_bits = bit(d, 22) && bit(d, 24) && bit(d, 25);
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) {
    features.avx_vnni = features.avx2 && bit(a, 4);
    features.avx512_bf16 = features.avx512 && bit(a, 5);
  }
  features.amx = amx_bits && tiles && byte_permutations && features.avx512_vnni && features.avx512_bf16 &&
                 request_amx_permission();
  return features;
}

#elif defined(__aarch64__)

CpuFeatures detect() {
  CpuFeatures features;
  features.model_name = read_model_name();
  const unsigned long first = getauxval(AT_HWCAP);
  const unsigned long second = getauxval(AT_HWCAP2);
  features.neon = (first & HWCAP_ASIMD) != 0;
  features.neon_dotprod = features.neon && (first & HWCAP_ASIMDDP) != 0;
  features.neon_bf16_i8mm =
      features.neon_dotprod && (second & HWCAP2_BF16) != 0 && (second & HWCAP2_I8MM) != 0;
  return features;
}

#else

CpuFeatures detect() {
  CpuFeatures features;
  features.model_name = read_model_name();
  return features;
}

#endif

/// What the environment variable VERBATIM_ISA says.
struct ForcedIsa {
  std::string_view name;  ///< empty: nothing
  bool plain = false;     ///< whether "-plain" stood behind the name
};

ForcedIsa forced_isa() {
  constexpr std::string_view kPlain = "-plain";
  const char* const text = std::getenv("VERBATIM_ISA");
  ForcedIsa forced{text == nullptr ? "" : text};
  if (forced.name.ends_with(kPlain) && forced.name.size() > kPlain.size()) {
    forced.name.remove_suffix(kPlain.size());
    forced.plain = true;
  }
  return forced;
}

constexpr Isa kAllIsas[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx, Isa::kNeon};

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

bool supports(const CpuFeatures& features, Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return true;
    case Isa::kAvx2:
      return features.avx2;
    case Isa::kAvx512:
      return features.avx512;
    case Isa::kAmx:
      return features.amx;
    case Isa::kNeon:
      return features.neon;
  }
  return false;
}

std::vector<Isa> available_isas(const CpuFeatures& features) {
  std::vector<Isa> isas;
  for (const Isa isa : kAllIsas) {
    if (supports(features, isa)) isas.push_back(isa);
  }
  return isas;
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAmx:
      return "amx";
    case Isa::kNeon:
      return "neon";
  }
  return "unknown";
}

Isa parse_isa(std::string_view name) {
  for (const Isa isa : kAllIsas) {
    if (name == isa_name(isa)) return isa;
  }
  fail(ErrorKind::kUsage,
       "VERBATIM_ISA is \"{}\"; it can be scalar, avx2, avx512, amx or neon, and avx2-plain, avx512-plain or "
       "neon-plain for these without dot products",
       name);
}

CpuFeatures preferred_features() {
  return forced_isa().plain ? without_dot_products(cpu_features()) : cpu_features();
}

CpuFeatures without_dot_products(CpuFeatures features) {
  features.avx_vnni = features.avx512_vnni = features.avx512_bf16 = features.amx = false;
  features.neon_dotprod = features.neon_bf16_i8mm = false;
  return features;
}

Isa preferred_isa() {
  const CpuFeatures& features = cpu_features();
  const auto [forced, plain] = forced_isa();
  if (forced.empty()) return available_isas(features).back();
  const Isa isa = parse_isa(forced);
  if (plain && (isa == Isa::kScalar || isa == Isa::kAmx)) {
    fail(ErrorKind::kUsage, "VERBATIM_ISA is \"{0}-plain\"; {0} has no kernels without dot products", forced);
  }
  if (!supports(features, isa)) {
    fail(ErrorKind::kMachine, "VERBATIM_ISA asks for {}, which this machine lacks; its best is {}", forced,
         isa_name(available_isas(features).back()));
  }
  return isa;
}

}  // namespace verbatim
