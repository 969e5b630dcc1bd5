#include "prepare/gptq_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "kv/dense.h"
#include "model/decoder.h"
#include "prepare/gptq.h"
#include "prepare/prepared_models.h"
#include "support/packed.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::models;
using test::some_tokens;
using test::TemporaryFolder;
using test::TinyModelOptions;

/// The sums of x·xᵀ over the inputs of all matrices while a model reads a text in windows.
std::map<std::string, SquareMatrix> hessians_of(Decoder& decoder, const std::vector<int32_t>& tokens,
                                                int64_t window) {
  ThreadTeam team(2);
  std::map<const LinearWeight*, std::string> names;
  std::map<std::string, SquareMatrix> sums;
  DecoderWeights& weights = decoder.weights();
  for (const MatrixSpec& spec : matrix_specs(decoder.config())) {
    names[&matrix_of(weights, spec.name)] = spec.name;
    sums[spec.name] = SquareMatrix(spec.k);
  }
  const std::function<void(const LinearWeight&, Matrix<const float>)> gather = [&](const LinearWeight& weight,
                                                                                   Matrix<const float> x) {
    add_outer_products(sums.at(names.at(&weight)), x, team);
  };
  PassKind kind(Reading::kFull);
  kind.inputs = &gather;
  DenseCache cache(decoder.cache_shape(), window);
  KvCache* const caches[] = {&cache};
  DecoderWorkspace workspace;
  for (size_t first = 0; first < tokens.size(); first += static_cast<size_t>(window)) {
    std::vector<Row> rows;
    for (size_t i = first; i < std::min(tokens.size(), first + static_cast<size_t>(window)); ++i) {
      rows.push_back({.sequence = 0, .position = static_cast<int32_t>(i - first), .token = tokens[i]});
    }
    cache.set_length(0);
    decoder.forward(rows, kind, caches, 0, workspace, team);
  }
  return sums;
}

// What a matrix is rounded by are the inputs that it has in the finished model.
TEST(GptqPass, RoundsEachMatrixByTheInputsThatTheRoundedModelGivesIt) {
  constexpr int64_t kWindow = 100;
  for (const TinyModelOptions& model : models()) {
    const TemporaryFolder folder;
    test::write_tiny_llama(folder.path() / "model", model);
    const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
    ThreadTeam team(2);
    const std::vector<int32_t> tokens = some_tokens(250);  // two windows and a part of one
    std::optional<RoundedWeights> rounded =
        round_in_pass(checkpoint, tokens, {.bits = 3, .window = kWindow}, team);
    ASSERT_TRUE(rounded);
    std::vector<std::string> not_finite;
    Decoder decoder(checkpoint.config, pack_weights(checkpoint, {}, team, not_finite));
    for (const MatrixSpec& spec : matrix_specs(checkpoint.config)) {
      matrix_of(decoder.weights(), spec.name) = std::move(rounded->at(spec.name).weight);
    }
    const std::map<std::string, SquareMatrix> hessians = hessians_of(decoder, tokens, kWindow);
    for (const MatrixSpec& spec : matrix_specs(checkpoint.config)) {
      const MatrixRows rows = matrix_rows(checkpoint, spec);
      DenseMatrix dense{.columns = spec.columns(), .k = spec.k, .values = {}};
      dense.values.resize(static_cast<size_t>(dense.columns * dense.k));
      for (int64_t column = 0; column < dense.columns; ++column) rows(column, dense.row(column));
      const RoundedMatrix expected = round_by_gptq(dense, hessians.at(spec.name), 3, team);
      const PackedMatrix& store = matrix_of(decoder.weights(), spec.name).stores.front();
      for (int64_t column = 0; column < dense.columns; ++column) {
        const std::vector<float> row = test::unpacked_column(store, Reading::kInt4W4A16, column);
        for (int64_t i = 0; i < dense.k; ++i) {
          ASSERT_EQ(row[static_cast<size_t>(i)], expected.value(column, i)) << spec.name;
        }
      }
    }
  }
}

TEST(GptqPass, GivesTheSameWeightsWithAnyNumberOfThreads) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model", models().front());
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
  ThreadTeam one(1);
  ThreadTeam three(3);
  const std::vector<int32_t> tokens = some_tokens(130);
  const std::optional<RoundedWeights> first = round_in_pass(checkpoint, tokens, {}, one);
  const std::optional<RoundedWeights> second = round_in_pass(checkpoint, tokens, {}, three);
  ASSERT_TRUE(first && second);
  for (const auto& [name, packed] : *first) {
    const std::vector<Plane>& planes = packed.weight.stores.front().planes;
    const std::vector<Plane>& others = second->at(name).weight.stores.front().planes;
    ASSERT_EQ(planes.size(), others.size());
    for (size_t i = 0; i < planes.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(planes[i].bytes(), others[i].bytes())) << name;
    }
  }
}

TEST(GptqPass, EndsWhenItIsCancelled) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
  ThreadTeam team(1);
  int asked = 0;
  EXPECT_FALSE(round_in_pass(checkpoint, some_tokens(20), {.cancelled = [&] { return ++asked == 3; }}, team));
  EXPECT_EQ(asked, 3);
}

TEST(GptqPass, RefusesATextThatNeedsMoreMemoryThanThereIs) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
  EXPECT_GT(gptq_pass_memory(checkpoint.config, 2000, 512), gptq_pass_memory(checkpoint.config, 1000, 512));
  checkpoint.config.intermediate_size = 1 << 24;
  ThreadTeam team(1);
  try {
    round_in_pass(checkpoint, some_tokens(1000), {}, team);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMachine);
    EXPECT_THAT(error.what(), testing::HasSubstr("for 1000 tokens of text"));
  }
}

}  // namespace
}  // namespace verbatim
