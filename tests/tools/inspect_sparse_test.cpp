#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "checkpoint/bad_input.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "verbatim/inspect.h"
#include "verbatim/pack.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using test::expect_bad_input;
using ::testing::Each;
using ::testing::Field;
using ::testing::IsEmpty;

/// A model with sensitivities of 1, but of 1000 in the first columns of `down` of layer 0.
class InspectSparse : public ::testing::Test {
 protected:
  void SetUp() override {
    test::write_tiny_llama(model_, options_);
    sensitivities_ = folder_.write("fisher.safetensors", test::safetensors_file(made_up(), DType::kF32));
  }

  std::vector<test::NamedTensor> made_up() {
    std::vector<test::NamedTensor> tensors;
    for (test::NamedTensor& tensor : test::tiny_tensors(options_)) {
      if (tensor.shape.size() != 2) continue;
      std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
      if (tensor.name == "model.layers.0.mlp.down_proj.weight")
        std::fill_n(tensor.values.begin(), 8, 1000.0f);
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  fs::path pack(const std::string& name, PackOptions options) {
    EXPECT_TRUE(pack_model(model_, folder_.path() / name, options));
    return folder_.path() / name;
  }

  static const SparsePartReport& part(const ModelReport& report, const std::string& matrix) {
    return *std::ranges::find(report.packed->sparse, matrix, &SparsePartReport::matrix);
  }

  const test::TemporaryFolder folder_;
  const test::TinyModelOptions options_;
  const fs::path model_ = folder_.path() / "model";
  fs::path sensitivities_;
};

TEST_F(InspectSparse, AddsUpTheSensitivityOfTheWeightsThatAreKeptApart) {
  const double share = 8.5 / (options_.hidden_size * options_.intermediate_size);
  const fs::path file = pack("small.vbt", {.formats = {"squeeze3"},
                                           .sensitivities = sensitivities_,
                                           .sparse_sensitive = share,
                                           .sparse_outliers = 0.0});
  const ModelReport report = inspect_model(file, {.sensitivities = sensitivities_});
  const SparsePartReport& down = part(report, "layers.0.down");
  EXPECT_EQ(down.weights, int64_t{options_.hidden_size} * options_.intermediate_size);
  EXPECT_EQ(down.entries, 8);
  EXPECT_EQ(down.most_entries, 8) << "all are in the first column";
  EXPECT_EQ(down.fullest_entries, 8);
  EXPECT_EQ(down.columns_by_entries, (std::vector<int64_t>{options_.hidden_size - 1, 0, 0, 0, 1}));
  ASSERT_TRUE(down.sensitivity);
  EXPECT_DOUBLE_EQ(*down.sparse_sensitivity, 8000.0);
  EXPECT_DOUBLE_EQ(*down.sensitivity, 8000.0 + static_cast<double>(down.weights - 8));
  EXPECT_GT(down.bits_per_weight(), 3.0);
  EXPECT_EQ(part(report, "layers.1.down").entries, 0) << "none is more sensitive than another";
  EXPECT_EQ(part(report, "layers.1.qkv").sparse_sensitivity, 0.0);
}

TEST_F(InspectSparse, CountsEveryColumnOnceWithoutSensitivitiesToo) {
  const fs::path file = pack("both.vbt", {.formats = {"squeeze3", "squeeze4"}, .sparse_outliers = 0.03});
  const ModelReport report = inspect_model(file);
  ASSERT_FALSE(report.packed->sparse.empty());
  for (const SparsePartReport& sparse : report.packed->sparse) {
    EXPECT_EQ(std::accumulate(sparse.columns_by_entries.begin(), sparse.columns_by_entries.end(), int64_t{0}),
              sparse.columns);
    EXPECT_GT(sparse.entries, 0);
    EXPECT_LE(static_cast<double>(sparse.entries), 0.0305 * static_cast<double>(sparse.weights));
    EXPECT_LE(sparse.most_entries, sparse.fullest_entries);
    EXPECT_FALSE(sparse.sensitivity);
  }
}

TEST_F(InspectSparse, FindsSensitivitiesOfTensorsThatPackingHasCut) {
  const test::TinyModelOptions fused{.model_type = "phi3"};
  test::write_tiny_llama(folder_.path() / "fused", fused);
  std::vector<test::NamedTensor> tensors;
  for (test::NamedTensor& tensor : test::tiny_tensors(fused)) {
    if (tensor.shape.size() != 2) continue;
    std::fill(tensor.values.begin(), tensor.values.end(), 2.0f);
    tensors.push_back(std::move(tensor));
  }
  const fs::path file = folder_.write("of-fused.safetensors", test::safetensors_file(tensors, DType::kF32));
  const fs::path packed = folder_.path() / "fused.vbt";
  ASSERT_TRUE(pack_model(folder_.path() / "fused", packed, {.formats = {"squeeze4"}, .sensitivities = file}));
  const ModelReport report = inspect_model(packed, {.sensitivities = file});
  for (const SparsePartReport& sparse : report.packed->sparse) {
    ASSERT_TRUE(sparse.sensitivity) << sparse.matrix;
    EXPECT_DOUBLE_EQ(*sparse.sensitivity, 2.0 * static_cast<double>(sparse.weights)) << sparse.matrix;
    EXPECT_DOUBLE_EQ(*sparse.sparse_sensitivity, 2.0 * static_cast<double>(sparse.entries)) << sparse.matrix;
  }
}

TEST_F(InspectSparse, IsOfPackedFilesInFormatsThatHaveOne) {
  const fs::path plain = pack("plain.vbt", {.formats = {"full"}});
  EXPECT_THAT(inspect_model(plain).packed->sparse, IsEmpty());
  for (const fs::path& other : {plain, model_}) {
    try {
      inspect_model(other, {.sensitivities = sensitivities_});
      FAIL() << other;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    }
  }
}

TEST_F(InspectSparse, RefusesSensitivitiesOfOtherSizes) {
  const fs::path file = pack("small.vbt", {.formats = {"squeeze3"}});
  const fs::path other = folder_.path() / "other";
  const fs::path wrong =
      folder_.write("wrong.safetensors",
                    test::safetensors_file({{"model.layers.0.self_attn.q_proj.weight", {2, 2}, {1, 1, 1, 1}}},
                                           DType::kF32));
  expect_bad_input([&] { inspect_model(file, {.sensitivities = wrong}); },
                   {"wrong.safetensors", "same model"});
  expect_bad_input([&] { inspect_model(file, {.sensitivities = other}); }, {"other"});
}

}  // namespace
}  // namespace verbatim
