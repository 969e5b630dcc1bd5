#include <gtest/gtest.h>

#include <cstring>

#include "formats/products.h"
#include "model/weights.h"
#include "support/packed.h"
#include "support/quantized_folder.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using test::Quantizing;

/// A matrix of the tiny model in formats, its own where none is given.
LinearWeight packed(const Checkpoint& checkpoint, const std::string& tensor,
                    std::vector<std::optional<Format>> formats) {
  const TensorView& view = checkpoint.tensors.at(tensor);
  MatrixSpec spec;
  spec.name = "layers.0.down";
  spec.k = view.columns();
  spec.parts = {{tensor, view.rows(), false}};
  ThreadTeam team(2);
  std::vector<std::string> not_finite;
  LoadOptions options;
  options.formats = std::move(formats);
  return pack_matrix(checkpoint, spec, options, team, not_finite);
}

/// Expects every weight of a store to be that of the file, bit for bit but for the sign of zero.
void expect_weights(const PackedMatrix& store, const std::vector<float>& expected, int64_t columns) {
  std::vector<float> column(static_cast<size_t>(store.k));
  for (size_t r = 0; r < expected.size() / static_cast<size_t>(columns); ++r) {
    operations(store.format)
        .unpack_column(store, readings(store.format).front(), static_cast<int64_t>(r), column);
    for (size_t c = 0; c < static_cast<size_t>(columns); ++c) {
      ASSERT_EQ(column[c], expected[r * static_cast<size_t>(columns) + c]) << r << " " << c;
    }
  }
}

struct Case {
  Quantizing how;
  Format own;
};

TEST(QuantizedSafetensorsWeights, AreKeptExactlyInTheirOwnFormat) {
  const Case cases[] = {
      {{.method = "gptq", .bits = 4, .group_size = 128}, Format::kInt4},
      {{.method = "gptq", .bits = 4, .group_size = -1}, Format::kInt4},
      {{.method = "gptq", .bits = 4, .group_size = 128, .symmetric = false}, Format::kInt4Asymmetric},
      {{.method = "awq", .bits = 4, .group_size = 128, .symmetric = false}, Format::kInt4Asymmetric},
      {{.method = "pack-quantized", .bits = 4, .group_size = 128, .scale_type = "BF16"}, Format::kInt4},
      {{.method = "gptq", .bits = 4, .group_size = 64}, Format::kQ8_0},
      {{.method = "awq", .bits = 4, .group_size = 32, .symmetric = false}, Format::kQ8_0},
      {{.method = "gptq", .bits = 8, .group_size = 128}, Format::kQ8_0},
      {{.method = "fp8", .scale_type = "F32", .powers_of_two = true}, Format::kBf16}};
  for (const auto& [how, own] : cases) {
    const test::TemporaryFolder folder;
    const test::QuantizedFolder model = test::quantized_folder(how);
    model.write(folder.path());
    const Checkpoint checkpoint = open_checkpoint(folder.path());
    for (const char* const tensor :
         {"model.layers.0.mlp.down_proj.weight", "model.layers.1.mlp.up_proj.weight"}) {
      const LinearWeight weight = packed(checkpoint, tensor, {std::nullopt});
      ASSERT_EQ(weight.stores.size(), 1u);
      EXPECT_EQ(weight.stores.front().format, own) << how.method << how.group_size;
      EXPECT_EQ(weight.resolve(Reading::kFull), readings(own).front());
      const int64_t columns = checkpoint.tensors.at(tensor).columns();
      expect_weights(weight.stores.front(), model.expected.at(tensor), columns);
      expect_weights(packed(checkpoint, tensor, {Format::kF32}).stores.front(), model.expected.at(tensor),
                     columns);
    }
  }
}

TEST(QuantizedSafetensorsWeights, AreReadInTheirOwnFormatWhateverElseIsAskedFor) {
  const test::TemporaryFolder folder;
  test::quantized_folder({.method = "gptq", .bits = 4, .group_size = 128}).write(folder.path());
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  const std::string tensor = "model.layers.0.mlp.down_proj.weight";
  for (const Format other : {Format::kInt4Asymmetric, Format::kF32, Format::kMxfp4}) {
    EXPECT_EQ(packed(checkpoint, tensor, {other, std::nullopt}).resolve(Reading::kFull), Reading::kInt4W4A16);
  }
  // q8_0 could hold these codes, but scales sums of 32 products where int4 scales sums of 128.
  EXPECT_THROW((packed(checkpoint, tensor, {Format::kQ8_0})), Error);
  EXPECT_THROW((packed(checkpoint, tensor, {std::nullopt, Format::kQ8_0})), Error);
}

TEST(QuantizedSafetensorsWeights, AreRoundedToTheTypeThatLosesLeastWhereNoFormatHoldsThem) {
  const Case cases[] = {{{.method = "fp8", .scale_type = "F32"}, Format::kBf16},
                        {{.method = "gptq", .bits = 4, .group_size = 128, .reordered = true}, Format::kF16},
                        {{.method = "gptq", .bits = 8, .group_size = 128, .symmetric = false}, Format::kF16}};
  for (const auto& [how, own] : cases) {
    const test::TemporaryFolder folder;
    test::QuantizedFolder model = test::quantized_folder(how);
    model.write(folder.path());
    const Checkpoint checkpoint = open_checkpoint(folder.path());
    const std::string tensor = "model.layers.0.mlp.down_proj.weight";
    const LinearWeight weight = packed(checkpoint, tensor, {std::nullopt});
    ASSERT_EQ(weight.stores.front().format, own);
    std::vector<float>& values = model.expected.at(tensor);
    for (float& value : values) {
      value = own == Format::kF16 ? to_float(to_float16(value)) : to_float(to_bfloat16(value));
    }
    expect_weights(weight.stores.front(), values, checkpoint.tensors.at(tensor).columns());
  }
}

}  // namespace
}  // namespace verbatim
