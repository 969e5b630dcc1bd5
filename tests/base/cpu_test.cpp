#include "base/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "verbatim/error.h"

namespace verbatim {
namespace {

using ::testing::ElementsAre;

/// Sets VERBATIM_ISA for the length of a test.
class ForcedIsa {
 public:
  explicit ForcedIsa(const char* value) {
    if (const char* before = std::getenv(kName)) before_ = before;
    setenv(kName, value, 1);
  }
  ~ForcedIsa() {
    if (before_) {
      setenv(kName, before_->c_str(), 1);
    } else {
      unsetenv(kName);
    }
  }
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;

 private:
  static constexpr const char* kName = "VERBATIM_ISA";
  std::optional<std::string> before_;
};

TEST(Isa, NamesAndParsingAreInverse) {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx, Isa::kNeon})
    EXPECT_EQ(parse_isa(isa_name(isa)), isa);
  EXPECT_EQ(isa_name(Isa::kAvx512), "avx512");
}

TEST(Isa, UnknownNamesAreRefused) {
  for (const char* name : {"", "AVX2", "sse", "amx "}) {
    try {
      parse_isa(name);
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    }
  }
}

TEST(Isa, DependsOnTheFeatures) {
  CpuFeatures features;
  EXPECT_THAT(available_isas(features), ElementsAre(Isa::kScalar));
  features.avx2 = true;
  EXPECT_TRUE(supports(features, Isa::kAvx2));
  EXPECT_FALSE(supports(features, Isa::kAvx512));
  features.avx512 = true;
  features.amx = true;
  EXPECT_THAT(available_isas(features), ElementsAre(Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx));
  CpuFeatures of_aarch64;
  of_aarch64.neon = true;
  EXPECT_THAT(available_isas(of_aarch64), ElementsAre(Isa::kScalar, Isa::kNeon));
}

TEST(Cpu, FeaturesImplyTheLesserOnes) {
  const CpuFeatures& features = cpu_features();
  EXPECT_FALSE(features.model_name.empty());
  EXPECT_LE(features.avx_vnni, features.avx2);
  EXPECT_LE(features.avx512, features.avx2);
  EXPECT_LE(features.avx512_vnni, features.avx512);
  EXPECT_LE(features.avx512_bf16, features.avx512);
  EXPECT_LE(features.amx, features.avx512_vnni && features.avx512_bf16);
  EXPECT_LE(features.neon_dotprod, features.neon);
  EXPECT_LE(features.neon_bf16_i8mm, features.neon_dotprod);
}

TEST(PreferredIsa, IsTheHighestUnlessForced) {
  const ForcedIsa unset("");
  EXPECT_EQ(preferred_isa(), available_isas(cpu_features()).back());
  const ForcedIsa forced("scalar");
  EXPECT_EQ(preferred_isa(), Isa::kScalar);
}

TEST(PreferredIsa, RefusesWhatIsUnknown) {
  const ForcedIsa forced("avx1024");
  EXPECT_THROW(preferred_isa(), Error);
}

TEST(PreferredIsa, LeavesDotProductsOutWherePlainStandsBehindItsName) {
  if (!cpu_features().avx2) GTEST_SKIP() << "this machine lacks AVX2";
  const ForcedIsa forced("avx2-plain");
  EXPECT_EQ(preferred_isa(), Isa::kAvx2);
  EXPECT_FALSE(preferred_features().avx_vnni);
  EXPECT_TRUE(preferred_features().avx2);
  const ForcedIsa with("avx2");
  EXPECT_EQ(preferred_features().avx_vnni, cpu_features().avx_vnni);
}

TEST(PreferredIsa, RefusesPlainPathsThatThereAreNot) {
  for (const char* name : {"scalar-plain", "-plain", "avx2-plain-plain", "avx1024-plain"}) {
    const ForcedIsa forced(name);
    EXPECT_THROW(preferred_isa(), Error) << name;
  }
}

TEST(PreferredIsa, RefusesWhatTheMachineLacks) {
  if (cpu_features().amx) GTEST_SKIP() << "this machine lacks nothing";
  const ForcedIsa forced("amx");
  try {
    preferred_isa();
    FAIL() << "amx was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMachine);
  }
}

}  // namespace
}  // namespace verbatim
