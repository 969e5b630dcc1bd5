#include <gtest/gtest.h>

#include "engine/model_access.h"
#include "engine/model_identity.h"
#include "support/engine_support.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/verbatim.h"

// Models whose matrices are of several types, as most quantized GGUF files are.

namespace verbatim {
namespace {

class MixedFormats : public testing::TestWithParam<std::pair<DType, DType>> {
 protected:
  MixedFormats() {
    test::write_tiny_gguf(folder_.path() / "mixed.gguf", {.dtype = GetParam().first,
                                                          .vocab_size = 260,
                                                          .byte_vocabulary = true,
                                                          .head_dtype = GetParam().second});
  }
  Model load(std::vector<std::string> formats = {}) {
    return test::load_model(folder_.path() / "mixed.gguf", std::move(formats));
  }
  test::TemporaryFolder folder_;
  std::vector<int32_t> tokens_ = {1, 70, 80, 90, 100};
};
INSTANTIATE_TEST_SUITE_P(, MixedFormats,
                         testing::Values(std::pair(DType::kQ8_0, DType::kF32),
                                         std::pair(DType::kF16, DType::kQ8_0),
                                         std::pair(DType::kBF16, DType::kF32)),
                         [](const auto& info) {
                           return dtype_name(info.param.first) + "_and_" + dtype_name(info.param.second);
                         });

TEST_P(MixedFormats, AreReadByEveryFunctionThatEvaluatesAText) {
  const Model model = load();
  EXPECT_EQ(top_logits(model, tokens_).size(), tokens_.size());
  EXPECT_EQ(score(model, tokens_).size(), tokens_.size() - 1);
  EXPECT_EQ(embed(model, tokens_).size(), 128u);
  EXPECT_EQ(digest_of(data_of(model), Reading::kFull), digest_of(data_of(load()), Reading::kFull));
}

TEST_P(MixedFormats, AReadingThatSomeMatrixLacksIsRefused) {
  EXPECT_THROW(top_logits(load(), tokens_, {.reading = "mxfp4-w4a8"}), Error);
}

}  // namespace
}  // namespace verbatim
