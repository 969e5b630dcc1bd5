#include "support/lossless_formats.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

INSTANTIATE_TEST_SUITE_P(, LosslessFormats,
                         testing::Combine(testing::ValuesIn(machine_paths()), testing::Values(0.0f, 0.8f)),
                         lossless_parameter_name);

TEST_P(LosslessFormats, SayWhatBf16SaysToRealPrompts) {
  SKIP_WITHOUT(test::default_model());
  SKIP_WITHOUT(test::shared_data());
  for (const std::string& prompt : real_prompts(slow_ ? 2 : 10, slow_ ? 60 : 300)) {
    expect_the_text_of_bf16(prompt, temperature_, slow_ ? 8 : 60);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace verbatim
