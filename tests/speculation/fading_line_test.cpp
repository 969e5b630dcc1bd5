#include "speculation/fading_line.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(FadingLine, GoesThroughZeroUntilItKnowsMore) {
  const FadingLine line(2.0);
  EXPECT_NEAR(line.of(1.0), 2.0, 1e-9);
  EXPECT_NEAR(line.of(5.0), 10.0, 1e-9);
}

TEST(FadingLine, FindsTheBeginningAndTheSlope) {
  FadingLine line(1.0);
  for (int i = 0; i < 200; ++i) {
    const double x = 1 + i % 5;
    line.observe(x, 3.0 + 0.5 * x);
  }
  for (double x = 1.0; x < 9.0; ++x) EXPECT_NEAR(line.of(x), 3.0 + 0.5 * x, 0.1) << x;
}

TEST(FadingLine, IsProportionalWhereNothingElseWasSeen) {
  FadingLine line(1.0);
  for (int i = 0; i < 200; ++i) line.observe(2.0, 6.0);
  EXPECT_NEAR(line.of(2.0), 6.0, 1e-6);
  EXPECT_NEAR(line.of(1.0), 3.0, 1e-6);
  EXPECT_NEAR(line.of(4.0), 12.0, 1e-6);
}

TEST(FadingLine, ForgetsWhatIsLongAgo) {
  FadingLine line(1.0);
  for (int i = 0; i < 50; ++i) line.observe(1 + i % 3, 100.0);
  for (int i = 0; i < 100; ++i) line.observe(1 + i % 3, 2.0 * (1 + i % 3));
  for (double x = 1.0; x < 5.0; ++x) EXPECT_NEAR(line.of(x), 2.0 * x, 0.01) << x;
}

TEST(FadingLine, NeverFalls) {
  FadingLine line(1.0);
  line.observe(2.0, 0.5);
  EXPECT_GT(line.of(16.0), 0.0);
  EXPECT_GE(line.of(16.0), line.of(1.0));
  for (int i = 0; i < 20; ++i) line.observe(1 + i % 4, 10.0 - 2.0 * (i % 4));
  EXPECT_GE(line.of(16.0), line.of(1.0));
}

TEST(FadingLine, NeverBeginsBelowZero) {
  FadingLine line(1.0);
  for (int i = 0; i < 100; ++i) line.observe(1 + i % 3, 5.0 * (1 + i % 3) - 3.0);
  EXPECT_GE(line.of(0.0), 0.0);
  EXPECT_GT(line.of(1.0), 0.0);
}

}  // namespace
}  // namespace verbatim
