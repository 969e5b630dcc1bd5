#include "support/lossless_formats.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT: the support of this very test

INSTANTIATE_TEST_SUITE_P(, LosslessFormats,
                         testing::Combine(testing::ValuesIn(machine_paths()), testing::Values(0.0f, 0.8f)),
                         lossless_parameter_name);

TEST_P(LosslessFormats, SayWhatBf16Says) {
  SKIP_WITHOUT(test::default_model());
  expect_the_text_of_bf16("def fibonacci(n):\n    \"\"\"", temperature_, slow_ ? 5 : 24);
}

TEST(LosslessFormatsOfOtherTypes, AreRefusedInWordsThatHelp) {
  const auto file = test::shared_data() / "models" / "stories260K" / "stories260K-f32.gguf";
  SKIP_WITHOUT(file);
  for (const std::string format : {"bsfp", "mxbf16"}) {
    try {
      load_model(file, {format});
      ADD_FAILURE() << format << " cannot hold F32";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
      const std::string message = error.what();
      EXPECT_NE(message.find(format), std::string::npos) << message;
      EXPECT_NE(message.find("pack it into f32"), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace verbatim
