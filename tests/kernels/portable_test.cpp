#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string_view>

#include "base/error.h"
#include "kernels/scalar/multiply_add.h"
#include "support/environment.h"
#include "support/machine_paths.h"
#include "verbatim/machine.h"

namespace verbatim {
namespace {

/// Expects the bits of `expected`, or NaN of any bits where it is NaN.
void expect_same(float actual, float expected) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << actual;
  } else {
    EXPECT_EQ(std::bit_cast<uint32_t>(actual), std::bit_cast<uint32_t>(expected))
        << actual << ", " << expected;
  }
}

TEST(PortableKernels, AreThereForEveryPathUnderNamesOfTheirOwn) {
  const std::vector<test::MachinePath> paths = test::machine_paths();
  const std::vector<test::MachinePath> portable = test::portable_paths();
  ASSERT_EQ(paths.size(), portable.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    EXPECT_STREQ(portable[i].table->rounding, kPortableRounding) << paths[i].name;
    const bool same = std::string_view(paths[i].table->rounding) == kPortableRounding;
    // Costs of passes are kept under the names of tables.
    EXPECT_EQ(std::string_view(paths[i].table->name) == portable[i].table->name, same) << paths[i].name;
    EXPECT_EQ(same, paths[i].name != "amx" && paths[i].name != "avx512_dot_products");
  }
}

TEST(PortableKernels, AreWantedByTheEnvironment) {
  test::Environment environment;
  for (const char* no : {"", "0"}) {
    environment.set("VERBATIM_PORTABLE", no);
    EXPECT_FALSE(portable_wanted());
  }
  environment.set("VERBATIM_PORTABLE", "1");
  EXPECT_TRUE(portable_wanted());
  environment.set("VERBATIM_PORTABLE", "yes");
  try {
    portable_wanted();
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_STREQ(error.what(), "VERBATIM_PORTABLE is \"yes\"; it can be 1 or 0");
  }
}

TEST(PortableKernels, AreRefusedOnceOthersAreInUse) {
  KernelTable table = *test::machine_paths().front().table;
  {
    const test::SelectedKernels selected(table);
    EXPECT_NO_THROW(use_portable_kernels());
    EXPECT_EQ(&kernels(), &table);
  }
  table.rounding = "some other";
  const test::SelectedKernels selected(table);
  try {
    use_portable_kernels();
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  }
  EXPECT_EQ(&kernels(), &table);
}

TEST(ScalarMultiplyAdd, OfInfinitiesAndExtremesIsThatOfTheCLibrary) {
  const float extremes[] = {0.0f,   -0.0f,   1.0f,     -0.3f,     3.4e38f, -3.4e38f,
                            1e-45f, -1e-38f, INFINITY, -INFINITY, NAN};
  for (const float a : extremes) {
    for (const float b : extremes) {
      for (const float c : extremes) {
        expect_same(scalar::multiply_add(a, b, c), std::fmaf(a, b, c));
        if (HasFailure()) FAIL() << a << " * " << b << " + " << c;
      }
    }
  }
}

// The C library's fmaf is exact by its definition.
TEST(ScalarMultiplyAdd, RoundsOnceWhateverTheMagnitudes) {
  std::mt19937_64 random(5);
  const auto number = [&](uint32_t lowest_exponent, uint32_t exponents) {
    const auto bits = static_cast<uint32_t>(random());
    const auto exponent = static_cast<uint32_t>(lowest_exponent + random() % exponents);
    return std::bit_cast<float>((bits & 0x807fffffu) | exponent << 23);
  };
  const auto bf16 = [](float x) { return to_float(to_bfloat16(x)); };
  int apart = 0;  // what two roundings would have made different
  for (int i = 0; i < 400000; ++i) {
    float a = number(0, 256);
    float b = number(0, 256);
    float c = number(0, 256);
    if (i % 4 == 1) {  // of like size
      a = number(100, 50), b = number(100, 50), c = number(100, 50);
    } else if (i % 4 == 2) {  // subnormal and beside it
      a = number(0, 100), b = number(0, 90), c = number(0, 40);
    } else if (i % 4 == 3) {  // nearly nothing is left
      a = number(100, 50), b = number(100, 50);
      c = std::bit_cast<float>(std::bit_cast<uint32_t>(-a * b) + static_cast<uint32_t>(random() % 7) - 3);
    }
    const float expected = std::fmaf(a, b, c);
    expect_same(scalar::multiply_add(a, b, c), expected);
    apart += a * b + c != expected && !std::isnan(expected) ? 1 : 0;
    a = bf16(a);
    b = bf16(b);
    if (i % 4 == 3)
      c = std::bit_cast<float>(std::bit_cast<uint32_t>(-a * b) + static_cast<uint32_t>(random() % 7) - 3);
    expect_same(scalar::multiply_add_bf16(a, b, c), std::fmaf(a, b, c));
    if (HasFailure()) FAIL() << a << " * " << b << " + " << c;
  }
  EXPECT_GT(apart, 1000);
}

}  // namespace
}  // namespace verbatim
