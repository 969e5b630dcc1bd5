#include "support/byte_identity.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

INSTANTIATE_TEST_SUITE_P(, ByteIdentity,
                         testing::Combine(testing::ValuesIn(machine_paths()), testing::Values(0.0f, 0.8f)),
                         parameter_name);

// Every combination on every prompt, with a model small enough for it.
TEST_P(ByteIdentity, EveryCombinationGivesThePlainTextOfASmallModel) {
  LOWER_PATHS_TOO_LONG_FOR_SANITIZERS(std::get<0>(GetParam()).name);
  const Model model = load_model(draft_model());
  const bool slow = std::get<0>(GetParam()).name == "scalar";
  std::vector<size_t> all;
  for (size_t v = 0; v < 2 * kVariations; ++v) all.push_back(v);
  Totals totals;
  expect_identical(model, model.encode("Once upon a time"), temperature_, slow ? 24 : 40, all, totals);
  if (HasFatalFailure()) return;
  if (!slow)
    expect_identical(model, model.encode("Lily and Tom went to the park."), temperature_, 40, all, totals);
  EXPECT_LT(totals.accepted, totals.drafted);
}

}  // namespace
}  // namespace verbatim
