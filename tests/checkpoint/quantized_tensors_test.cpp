#include "checkpoint/quantized_tensors.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "checkpoint/bad_input.h"
#include "checkpoint/scaled_codes.h"
#include "support/quantized_folder.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::expect_bad_input;
using test::quantized_folder;
using test::QuantizedFolder;
using test::Quantizing;
using test::TemporaryFolder;

/// Every layout that opens.
std::vector<Quantizing> layouts() {
  return {
      {.method = "fp8", .scale_type = "F32"},
      {.method = "fp8", .block_rows = 48, .block_columns = 40, .scale_type = "BF16"},
      {.method = "fp8", .strategy = "tensor", .scale_type = "F32"},
      {.method = "fp8", .number = "F8_E5M2", .scale_type = "F32"},
      {.method = "fp8", .scale_type = "F32", .powers_of_two = true},
      {.method = "float-quantized", .strategy = "tensor", .scale_type = "F32"},
      {.method = "float-quantized", .strategy = "channel", .scale_type = "BF16"},
      {.method = "float-quantized", .strategy = "block", .block_rows = 64, .scale_type = "BF16"},
      {.method = "gptq", .bits = 4, .group_size = 64},
      {.method = "gptq", .bits = 4, .group_size = 32, .symmetric = false},
      {.method = "gptq", .bits = 4, .group_size = 16, .symmetric = false, .version = 2},
      {.method = "gptq", .bits = 4, .group_size = 64, .symmetric = false, .reordered = true},
      {.method = "gptq", .bits = 4, .group_size = -1},
      {.method = "gptq", .bits = 8, .group_size = 128},
      {.method = "gptq", .bits = 8, .group_size = 64, .symmetric = false},
      {.method = "awq", .bits = 4, .group_size = 64, .symmetric = false},
      {.method = "pack-quantized", .bits = 4, .group_size = 128, .scale_type = "BF16"},
      {.method = "pack-quantized", .bits = 4, .group_size = 32, .symmetric = false, .scale_type = "BF16"},
      {.method = "pack-quantized", .bits = 4, .group_size = 64, .reordered = true, .scale_type = "BF16"},
      {.method = "pack-quantized", .bits = 8, .group_size = -1, .scale_type = "F16"},
  };
}

std::string text_of(const Quantizing& how) {
  return fmt::format("{} {} bits, groups of {}, {}, {}, version {}, {}, {}", how.method, how.bits,
                     how.group_size, how.symmetric ? "symmetric" : "with zero points",
                     how.reordered ? "reordered" : "in order", how.version, how.strategy, how.number);
}

Checkpoint opened(const TemporaryFolder& folder, const QuantizedFolder& model) {
  model.write(folder.path());
  return open_checkpoint(folder.path());
}

std::vector<float> all_rows(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.columns()));
  for (int64_t r = 0; r < tensor.rows(); ++r) {
    tensor.read_row(r, std::span(values).subspan(static_cast<size_t>(r * tensor.columns()),
                                                 static_cast<size_t>(tensor.columns())));
  }
  return values;
}

TEST(QuantizedTensors, OfEveryLayoutAreTheProductsOfCodesAndScalesBitForBit) {
  for (const Quantizing& how : layouts()) {
    const TemporaryFolder folder;
    const QuantizedFolder model = quantized_folder(how);
    const Checkpoint checkpoint = opened(folder, model);
    ASSERT_GT(model.expected.size(), 10u);
    for (const auto& [name, expected] : model.expected) {
      const std::vector<float> values = all_rows(checkpoint.tensors.at(name));
      ASSERT_EQ(values.size(), expected.size()) << name;
      ASSERT_EQ(std::memcmp(values.data(), expected.data(), 4 * values.size()), 0)
          << name << " " << text_of(how);
    }
  }
}

TEST(QuantizedTensors, GiveCodesOfEightBitsThatAreTheSameWeightsWhereGroupsAreOfThirtyTwoOrMore) {
  int with_codes = 0;
  for (const Quantizing& how : layouts()) {
    const TemporaryFolder folder;
    const QuantizedFolder model = quantized_folder(how);
    const Checkpoint checkpoint = opened(folder, model);
    const bool floats = how.method == "fp8" || how.method == "float-quantized";
    const bool expected =
        !floats && !how.reordered && how.group_size != 16 && (how.bits == 4 || how.symmetric);
    for (const auto& [name, values] : model.expected) {
      const TensorView& tensor = checkpoint.tensors.at(name);
      ASSERT_EQ(tensor.has_codes(), expected) << text_of(how);
      if (!expected) continue;
      ++with_codes;
      const auto columns = static_cast<size_t>(tensor.columns());
      std::vector<int8_t> codes(columns);
      std::vector<Float16> scales(columns / 32);
      for (int64_t r = 0; r < tensor.rows(); ++r) {
        tensor.read_codes(r, codes, scales);
        for (size_t c = 0; c < columns; ++c) {
          ASSERT_EQ(static_cast<float>(codes[c]) * to_float(scales[c / 32]),
                    values[static_cast<size_t>(r) * columns + c]);
        }
      }
    }
  }
  EXPECT_GT(with_codes, 50);
}

TEST(QuantizedTensors, AreBf16OnlyWhereEveryProductIs) {
  for (const Quantizing& how : layouts()) {
    const TemporaryFolder folder;
    const QuantizedFolder model = quantized_folder(how);
    const Checkpoint checkpoint = opened(folder, model);
    for (const auto& [name, values] : model.expected) {
      EXPECT_EQ(checkpoint.tensors.at(name).is_bf16(), how.powers_of_two) << text_of(how);
      if (!how.powers_of_two) continue;
      for (const float value : values) ASSERT_EQ(to_float(to_bfloat16(value)), value);
    }
  }
}

TEST(QuantizedTensors, OfFloat8HaveEveryValueOfTheirType) {
  for (int i = 0; i < 256; ++i) {
    const auto bits = static_cast<uint8_t>(i);
    const std::pair<float, double> both[] = {{float8_e4m3(bits), test::float8_value("F8_E4M3", bits)},
                                             {float8_e5m2(bits), test::float8_value("F8_E5M2", bits)}};
    for (const auto& [value, expected] : both) {
      EXPECT_EQ(std::isnan(value), std::isnan(expected)) << i;
      if (std::isnan(expected)) continue;
      EXPECT_EQ(value, expected) << i;
      EXPECT_EQ(std::signbit(value), std::signbit(expected)) << i;
    }
  }
}

TEST(QuantizedTensors, MayBeLeftOutByName) {
  const TemporaryFolder folder;
  QuantizedFolder model = quantized_folder({.method = "fp8", .scale_type = "F32"});
  const std::string module = "model.layers.1.mlp.down_proj";
  const std::vector<float> values = model.expected.at(module + ".weight");
  const auto shape = model.tensors.at(module + ".weight").shape;
  for (const char* names : {"modules_to_not_convert", "ignored_layers"}) {
    QuantizedFolder plain = model;
    plain.quantization[names] = {"model.layers.1.mlp.down_proj", "lm_head"};
    expect_bad_input([&] { opened(folder, plain); }, {module, "is quantized, but config.json says"});
    plain.tensors[module + ".weight"] = {"BF16", shape, test::encode(DType::kBF16, values)};
    plain.tensors.erase(module + ".weight_scale_inv");
    EXPECT_EQ(opened(folder, plain).tensors.at(module + ".weight").dtype, DType::kBF16);
  }
}

TEST(QuantizedTensors, HaveNoUseForScalesOfActivationsNorForBiasesOfZeros) {
  const TemporaryFolder folder;
  QuantizedFolder fp8 = quantized_folder({.method = "fp8", .strategy = "tensor", .scale_type = "F32"});
  fp8.quantization["activation_scheme"] = "static";
  fp8.quantization["dequantize"] = false;
  for (const char* const end : {"input_scale", "activation_scale"}) {
    QuantizedFolder scaled = fp8;
    for (const auto& [name, values] : fp8.expected) {
      scaled.tensors[name.substr(0, name.size() - 6) + end] = {"F32", {1}, test::bytes_of(0.5f)};
    }
    opened(folder, scaled);
  }
  QuantizedFolder gptq = quantized_folder({.method = "gptq", .bits = 4, .group_size = 64});
  const std::string bias = "model.layers.0.mlp.up_proj.bias";
  gptq.tensors[bias] = {"F16", {256}, std::string(512, '\0')};
  opened(folder, gptq);
  gptq.tensors[bias].bytes[3] = 1;
  expect_bad_input([&] { opened(folder, gptq); }, {bias, "no place"});
}

/// Expects a folder to be refused after a change.
template <typename Change>
void refused(QuantizedFolder model, Change&& change, std::initializer_list<std::string> parts) {
  const TemporaryFolder folder;
  change(model);
  expect_bad_input([&] { opened(folder, model); }, parts);
}

TEST(QuantizedTensors, AreRefusedWhereOneIsMissingOrOfAnotherShapeOrType) {
  const std::string module = "model.layers.0.self_attn.q_proj.";
  for (const Quantizing& how : layouts()) {
    const QuantizedFolder model = quantized_folder(how);
    for (const auto& [name, tensor] : model.tensors) {
      if (!name.starts_with(module)) continue;
      const bool optional_index = name.ends_with(".g_idx") && !how.reordered;
      if (!optional_index) refused(model, [&](auto& changed) { changed.tensors.erase(name); }, {module});
      refused(model,
              [&](auto& changed) {
                auto& other = changed.tensors.at(name);
                other.shape.push_back(1);
                if (other.shape.size() == 2) other.shape.push_back(1);
              },
              {name, "shape"});
      refused(model,
              [&](auto& changed) {
                auto& other = changed.tensors.at(name);
                other.dtype = "BF16";
                other.shape = {std::ssize(other.bytes) / 2};
              },
              {module});
    }
  }
}

TEST(QuantizedTensors, AreRefusedWhereAScaleIsNoFiniteNumber) {
  for (const Quantizing& how : layouts()) {
    const QuantizedFolder model = quantized_folder(how);
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
      refused(
          model,
          [&](QuantizedFolder& changed) {
            for (auto& [name, tensor] : changed.tensors) {
              if (!name.starts_with("model.layers.1.mlp.up_proj.") || name.find("scale") == std::string::npos)
                continue;
              const DType type = how.scale_type == "F32"   ? DType::kF32
                                 : how.scale_type == "F16" ? DType::kF16
                                                           : DType::kBF16;
              const std::string bytes = test::encode(type, {bad});
              tensor.bytes.replace(tensor.bytes.size() - bytes.size(), bytes.size(), bytes);
            }
          },
          {"model.layers.1.mlp.up_proj.", "scales that are NaN or infinite"});
    }
  }
}

TEST(QuantizedTensors, AreRefusedWhereConfigAndTensorsDisagree) {
  const QuantizedFolder gptq = quantized_folder({.method = "gptq", .bits = 4, .group_size = 64});
  const QuantizedFolder fp8 = quantized_folder({.method = "fp8", .scale_type = "F32"});
  const auto set = [](const char* key, const json& value) {
    return [=](QuantizedFolder& model) { model.quantization[key] = value; };
  };
  refused(gptq, set("checkpoint_format", "gptq_v2"), {".qzeros", "zero point 7", "checkpoint_format"});
  refused(gptq, set("group_size", 48), {".qweight", "no multiple of the group_size 48"});
  refused(gptq, set("group_size", 32), {".scales", "shape"});
  refused(gptq, set("bits", 8), {"shape"});
  refused(fp8, set("weight_block_size", {64, 64}), {"scale_inv", "shape"});
  refused(gptq,
          [](QuantizedFolder& model) {
            model.quantization = {{"quant_method", "fp8"}};
          },
          {"no tensor is quantized"});
  refused(gptq, [](QuantizedFolder& model) { model.quantization = nullptr; }, {"I32", "quantization_config"});
  refused(fp8, [](QuantizedFolder& model) { model.quantization = nullptr; },
          {"F8_E4M3", "quantization_config"});
  refused(gptq,
          [](QuantizedFolder& model) {
            auto& index = model.tensors.at("model.layers.0.mlp.up_proj.g_idx");
            index.bytes.replace(0, 4, test::bytes_of(int32_t{2}));
          },
          {"up_proj.g_idx", "group 2 of 2"});
  refused(quantized_folder({.method = "pack-quantized", .bits = 4, .group_size = 64, .scale_type = "BF16"}),
          [](QuantizedFolder& model) {
            auto& shape = model.tensors.at("model.layers.0.mlp.up_proj.weight_shape");
            shape.bytes.replace(8, 8, test::bytes_of(int64_t{1} << 40));
          },
          {"up_proj.weight_shape"});
  refused(fp8,
          [](QuantizedFolder& model) {
            model.tensors["model.embed_tokens.weight"] = {"F8_E4M3", {256, 128}, std::string(256 * 128, '8')};
          },
          {"embed_tokens", "embeddings"});
}

TEST(QuantizedTensors, KeepTheOrderOfInputsUnlessEveryGroupIsUnset) {
  const QuantizedFolder model = quantized_folder(
      {.method = "pack-quantized", .bits = 4, .group_size = 64, .reordered = true, .scale_type = "BF16"});
  const std::string name = "model.layers.0.mlp.up_proj.weight_g_idx";
  // A single group of -1 was taken for an order that was never written.
  refused(model, [&](QuantizedFolder& changed) { changed.tensors.at(name).bytes.replace(0, 4, 4, '\xff'); },
          {name, "names the group -1 of 2"});
  const TemporaryFolder folder;
  QuantizedFolder unset = model;
  std::string& groups = unset.tensors.at(name).bytes;
  groups.assign(groups.size(), '\xff');
  const Checkpoint checkpoint = opened(folder, unset);
  EXPECT_TRUE(checkpoint.tensors.at("model.layers.0.mlp.up_proj.weight").scaled->group_index.empty());
}

TEST(QuantizedTensors, AreNoOutputMatrixWhereTheEmbeddingIsIt) {
  QuantizedFolder model = quantized_folder({.method = "gptq", .bits = 4, .group_size = 64});
  model.options.tied = true;
  const std::string up = "model.layers.0.mlp.up_proj.";
  refused(model,
          [&](QuantizedFolder& changed) {
            changed.tensors.erase("lm_head.weight");
            for (const char* const part : {"qweight", "qzeros", "scales", "g_idx"}) {
              changed.tensors["lm_head." + std::string(part)] = changed.tensors.at(up + part);
            }
          },
          {"lm_head", "tie_word_embeddings"});
}

TEST(ScaledCodes, TakeTheNumberAfterAStoredZeroPointWhateverElseItsWordHolds) {
  constexpr uint32_t kWord = 0x7fffffff;  // the largest signed number
  const std::array<std::byte, 4> zeros = std::bit_cast<std::array<std::byte, 4>>(kWord);
  ScaledCodes matrix;
  matrix.layout = CodeLayout::kGptq;
  matrix.bits = 4;
  matrix.rows = 8;
  matrix.zeros = zeros;
  matrix.zero_offset = 1;
  for (int64_t row = 0; row < 7; ++row) EXPECT_EQ(matrix.zero(row, 0), 0) << row;  // 15 + 1 of 16 codes
  EXPECT_EQ(matrix.zero(7, 0), 8);
}

}  // namespace
}  // namespace verbatim
