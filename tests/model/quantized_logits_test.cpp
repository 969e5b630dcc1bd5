#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/engine_support.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

/// Loads a checkpoint with its matrices in one format, or each in the format of its own type.
Decoder load_in(const std::filesystem::path& path, std::optional<Format> format) {
  ThreadTeam team(2);
  std::vector<std::string> warnings;
  const Checkpoint checkpoint = open_checkpoint(path);
  LoadOptions options;
  options.formats = {format};
  DecoderWeights weights = pack_weights(checkpoint, options, team, warnings);
  return {checkpoint.config, std::move(weights)};
}

/// The largest difference between the logits of a model and the best logits that a file of expected values
/// has for each position.
float largest_difference(const Decoder& decoder, const nlohmann::json& ids, const nlohmann::json& top8) {
  ThreadTeam team(2);
  const auto tokens = ids.get<std::vector<int32_t>>();
  const std::vector<float> logits = test::all_logits(decoder, tokens, 512, Reading::kFull, team);
  const size_t vocabulary = logits.size() / tokens.size();
  float largest = 0.0f;
  EXPECT_EQ(top8.size(), tokens.size());
  for (size_t p = 0; p < tokens.size(); ++p) {
    for (const auto& best : top8[p]) {
      const float logit = logits[p * vocabulary + best[0].get<size_t>()];
      largest = std::max(largest, std::abs(logit - best[1].get<float>()));
    }
  }
  return largest;
}

TEST(PublicQuantizedLogits, OfEveryTypeInF32AreThoseOfAnotherImplementation) {
  NEEDS_PUBLIC_DATA();
  const std::filesystem::path folder = test::public_data() / "quantized";
  const auto expected = nlohmann::json::parse(test::read_file(folder / "expected.json"));
  for (const auto& [name, file] : expected["files"].items()) {
    const Decoder decoder = load_in(folder / file["file"].get<std::string>(), Format::kF32);
    // Weights and activations are exact; the keys and values of the cache are rounded to BF16, which moves
    // the logits of this random model by up to 0.05, whatever the type.
    EXPECT_LT(largest_difference(decoder, expected["ids"], file["top8"]), 0.07f) << name;
  }
}

TEST(PublicQuantizedLogits, OfCodesThatAreKeptDifferByTheRoundingOfActivations) {
  NEEDS_PUBLIC_DATA();
  const std::filesystem::path folder = test::public_data() / "quantized";
  const auto expected = nlohmann::json::parse(test::read_file(folder / "expected.json"));
  for (const char* const name : {"Q8_0", "Q4_0", "Q5_0", "IQ4_NL"}) {
    const auto& file = expected["files"][name];
    const Decoder decoder = load_in(folder / file["file"].get<std::string>(), std::nullopt);
    EXPECT_EQ(decoder.weights().head.stores.front().format, Format::kQ8_0) << name;
    EXPECT_LT(largest_difference(decoder, expected["ids"], file["top8"]), 0.1f) << name;
  }
}

// Activations in sixteen bits differ from exact ones by so little that what is left is the rounding of keys
// and values to BF16.
TEST(PublicQuantizedLogits, OfKQuantsThatAreKeptAreNearlyThoseOfExactActivations) {
  NEEDS_PUBLIC_DATA();
  const std::filesystem::path folder = test::public_data() / "quantized";
  const auto expected = nlohmann::json::parse(test::read_file(folder / "expected.json"));
  int files = 0;
  for (const auto& [name, file] : expected["files"].items()) {
    if (name.find("_K") == std::string::npos) continue;
    ++files;
    const Decoder decoder = load_in(folder / file["file"].get<std::string>(), std::nullopt);
    each_matrix(decoder.weights(), [&](const LinearWeight& matrix) {
      EXPECT_EQ(matrix.stores.front().format, Format::kKQuants) << name;
    });
    EXPECT_LT(largest_difference(decoder, expected["ids"], file["top8"]), 0.07f) << name;
  }
  EXPECT_GE(files, 8);
}

}  // namespace
}  // namespace verbatim
