#include "checkpoint/sensitivity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "checkpoint/bad_input.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::expect_bad_input;
using test::NamedTensor;
using test::safetensors_file;
using test::TemporaryFolder;

using Shape = std::vector<int64_t>;

SensitivityFile write_and_open(const TemporaryFolder& folder, const std::vector<NamedTensor>& tensors,
                               DType dtype = DType::kF32) {
  return open_sensitivities(folder.write("fisher.safetensors", safetensors_file(tensors, dtype)));
}

TEST(Sensitivity, ReadsEveryDtype) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const TemporaryFolder folder;
    const SensitivityFile file =
        write_and_open(folder, {{"a.weight", {2, 3}, {0.0f, 1.0f, 2.0f, 0.5f, 0.25f, 4.0f}}}, dtype);
    EXPECT_TRUE(file.has("a.weight"));
    EXPECT_FALSE(file.has("b.weight"));
    std::vector<float> row(3);
    file.tensor("a.weight", Shape{2, 3}).read_row(1, row);
    EXPECT_EQ(row, (std::vector<float>{0.5f, 0.25f, 4.0f}));
  }
}

TEST(Sensitivity, RefusesMissingAndMisshapenTensors) {
  const TemporaryFolder folder;
  const SensitivityFile file = write_and_open(folder, {{"a.weight", {2, 2}, {0.0f, 1.0f, 2.0f, 3.0f}}});
  expect_bad_input(
      [&] {
        file.tensor("b.weight", Shape{2, 2});
      },
      {"fisher.safetensors", "b.weight", "same model"});
  for (const Shape& shape : {Shape{4}, Shape{4, 1}, Shape{2, 3}, Shape{1, 2, 2}}) {
    expect_bad_input([&] { file.tensor("a.weight", shape); },
                     {"fisher.safetensors", "a.weight", "[2, 2]", "same model"});
  }
}

TEST(Sensitivity, RefusesWhatIsNoSquare) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {-1e-9f, -1.0f, NAN, infinity, -infinity}) {
    const TemporaryFolder folder;
    const SensitivityFile file =
        write_and_open(folder, {{"a.weight", {2, 2}, {0.0f, 1.0f, 2.0f, bad}}, {"b.weight", {1}, {1.0f}}});
    expect_bad_input(
        [&] {
          file.tensor("a.weight", Shape{2, 2});
        },
        {"fisher.safetensors", "a.weight", "row 1", "squared gradients"});
    file.tensor("b.weight", Shape{1});
  }
}

TEST(Sensitivity, ZeroCountsAsASquare) {
  const TemporaryFolder folder;
  write_and_open(folder, {{"a.weight", {3}, {0.0f, -0.0f, 1.0f}}}).tensor("a.weight", Shape{3});
}

TEST(Sensitivity, RefusesAFileOfZeros) {
  const TemporaryFolder folder;
  const std::vector<float> zeros(4, 0.0f);
  expect_bad_input(
      [&] {
        write_and_open(folder, {{"a.weight", {2, 2}, zeros}, {"b.weight", {4}, zeros}});
      },
      {"fisher.safetensors", "every sensitivity is 0"});
  write_and_open(folder, {{"a.weight", {2, 2}, zeros}, {"b.weight", {4}, {0.0f, 0.0f, 0.0f, 1e-30f}}});
}

TEST(Sensitivity, RefusesAFileOfZerosOfEitherSign) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const TemporaryFolder folder;
    expect_bad_input(
        [&] {
          write_and_open(folder, {{"a.weight", {3}, {0.0f, -0.0f, -0.0f}}}, dtype);
        },
        {"fisher.safetensors", "every sensitivity is 0"});
    write_and_open(folder, {{"a.weight", {3}, {0.0f, -0.0f, 2.0f}}}, dtype);
  }
}

TEST(Sensitivity, RefusesFilesThatAreNone) {
  const TemporaryFolder folder;
  expect_bad_input([&] { open_sensitivities(folder.path()); }, {"is a folder", ".safetensors"});
  expect_bad_input([&] { open_sensitivities(folder.path() / "absent.safetensors"); }, {"absent.safetensors"});
  const auto garbage = folder.write("garbage.safetensors", "this is no such file");
  expect_bad_input([&] { open_sensitivities(garbage); }, {"garbage.safetensors"});
}

TEST(Sensitivity, OutlivesTheHandleItWasOpenedWith) {
  const TemporaryFolder folder;
  SensitivityFile copy;
  {
    const SensitivityFile file = write_and_open(folder, {{"a.weight", {1}, {0.5f}}});
    copy = file;
  }
  std::vector<float> row(1);
  copy.tensor("a.weight", Shape{1}).read_row(0, row);
  EXPECT_EQ(row[0], 0.5f);
}

}  // namespace
}  // namespace verbatim
