#include "model/weights.h"

#include <gtest/gtest.h>

#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

std::vector<std::string> warnings_of(const std::vector<std::string>& formats) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model", {.dtype = DType::kF16});
  LoadOptions options;
  options.formats = parse_formats(formats);
  ThreadTeam team(1);
  std::vector<std::string> warnings;
  pack_weights(open_checkpoint(folder.path() / "model"), options, team, warnings);
  return warnings;
}

TEST(PackWeights, WarnsOnceWhenTheOnlyPlainFormatRounds) {
  const std::vector<std::string> warnings = warnings_of({"bf16"});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings.front().find("bf16 rounds weights of type f16"), std::string::npos) << warnings.front();
}

TEST(PackWeights, DoesNotWarnOfWhatIsExactOrQuantizedByName) {
  for (const std::vector<std::string>& formats : std::vector<std::vector<std::string>>{
           {"full"}, {"f16"}, {"f32"}, {"bf16", "full"}, {"bsfp"}, {"mxfp4"}, {"int8", "f16"}}) {
    EXPECT_TRUE(warnings_of(formats).empty()) << formats.front();
  }
}

}  // namespace
}  // namespace verbatim
