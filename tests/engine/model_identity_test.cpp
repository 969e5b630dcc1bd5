#include "engine/model_identity.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/model_access.h"
#include "support/engine_support.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

Digest digest_of_file(const std::filesystem::path& file, Reading reading = Reading::kFull) {
  return digest_of(data_of(test::load_model(file, {"full", "mxfp4"})), reading);
}

TEST(ModelIdentity, IsTheSameForTheSameWeights) {
  const test::TemporaryFolder folder;
  test::write_tiny_gguf(folder.path() / "a.gguf", {.vocab_size = 260, .byte_vocabulary = true});
  test::write_tiny_gguf(folder.path() / "b.gguf", {.vocab_size = 260, .byte_vocabulary = true});
  EXPECT_EQ(digest_of_file(folder.path() / "a.gguf"), digest_of_file(folder.path() / "b.gguf"));
  EXPECT_NE(digest_of_file(folder.path() / "a.gguf"),
            digest_of_file(folder.path() / "a.gguf", Reading::kMxfp4W4A16));
}

// Fine-tuned models often share their embedding with the model that they come from.
TEST(ModelIdentity, DiffersWhereAnyWeightDoes) {
  const test::TemporaryFolder folder;
  test::write_tiny_gguf(folder.path() / "a.gguf",
                        {.dtype = DType::kF32, .vocab_size = 260, .byte_vocabulary = true});
  const Digest whole = digest_of_file(folder.path() / "a.gguf");
  const std::string bytes = test::read_file(folder.path() / "a.gguf");
  for (int part = 2; part < 8; ++part) {
    std::string changed = bytes;
    char& byte = changed[bytes.size() / 8 * static_cast<size_t>(part) / 4 * 4 + 1];
    byte = static_cast<char>(byte ^ 1);  // of the mantissa
    EXPECT_NE(digest_of_file(folder.write("b.gguf", changed)), whole) << part;
  }
}

uint64_t fingerprint_of(const std::filesystem::path& file, const std::vector<std::string>& formats = {}) {
  return quick_fingerprint(data_of(test::load_model(file, formats)));
}

TEST(ModelIdentity, TheQuickFingerprintTellsFromEachOtherWhatRoundsDifferently) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "mixed.gguf";
  test::write_tiny_gguf(
      file, {.dtype = DType::kQ8_0, .vocab_size = 260, .byte_vocabulary = true, .head_dtype = DType::kF32});
  EXPECT_EQ(fingerprint_of(file), fingerprint_of(file, {"full", "mxfp4"}));
  EXPECT_NE(fingerprint_of(file), fingerprint_of(file, {"f32"}));
  const auto k_quants = folder.path() / "k-quants.gguf";
  test::write_tiny_gguf(
      k_quants,
      {.dtype = DType::kQ4_K, .hidden_size = 256, .heads = 8, .vocab_size = 260, .byte_vocabulary = true});
  EXPECT_EQ(fingerprint_of(k_quants), fingerprint_of(k_quants, {"full", "mxfp4"}));
  EXPECT_NE(fingerprint_of(k_quants), fingerprint_of(k_quants, {"f32"}));
}

TEST(ModelIdentity, TheQuickFingerprintTellsModelsWithOneEmbeddingFromEachOther) {
  const test::TemporaryFolder folder;
  test::TinyModelOptions options{.dtype = DType::kF32, .vocab_size = 260, .byte_vocabulary = true};
  test::write_tiny_gguf(folder.path() / "a.gguf", options);
  options.seed = 2;
  test::write_tiny_gguf(folder.path() / "b.gguf", options);
  std::string bytes = test::read_file(folder.path() / "a.gguf");
  const std::string other = test::read_file(folder.path() / "b.gguf");
  ASSERT_EQ(bytes.size(), other.size());
  const auto differs = std::mismatch(bytes.begin(), bytes.end(), other.begin()).first - bytes.begin();
  const auto embedding = static_cast<ptrdiff_t>(sizeof(float)) * options.vocab_size * options.hidden_size;
  std::copy(other.begin() + differs + embedding, other.end(), bytes.begin() + differs + embedding);
  EXPECT_NE(fingerprint_of(folder.write("c.gguf", bytes)), fingerprint_of(folder.path() / "a.gguf"));
}

}  // namespace
}  // namespace verbatim
