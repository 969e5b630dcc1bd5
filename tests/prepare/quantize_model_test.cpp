#include "prepare/quantize_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>

#include "checkpoint/bad_input.h"
#include "container/load.h"
#include "prepare/input_statistics.h"
#include "prepare/preparation.h"
#include "prepare/prepared_models.h"
#include "prepare/rounded_matrix.h"
#include "support/engine_support.h"
#include "support/packed.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::models;
using test::some_tokens;
using test::TemporaryFolder;
using test::TinyModelOptions;

std::vector<float> logits_of(const Decoder& decoder, Reading reading = Reading::kFull) {
  ThreadTeam team(2);
  return test::all_logits(decoder, some_tokens(40), 40, reading, team);
}

Decoder quantized(const Checkpoint& checkpoint, const std::filesystem::path& file, QuantizationScheme scheme,
                  Format format, int bits = 4, int threads = 2) {
  ThreadTeam team(threads);
  QuantizeModelOptions options;
  options.scheme = scheme;
  options.format = format;
  options.bits = bits;
  if (needs_calibration(scheme)) options.calibration = some_tokens(300);
  const std::optional<Container> container = quantize_model(checkpoint, file, options, team);
  return Decoder(checkpoint_of(*container).config, load_weights(*container, {}));
}

double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  double error = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(static_cast<double>(actual[i]) - expected[i], 2);
    size += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(error / size);
}

class Schemes : public testing::TestWithParam<QuantizationScheme> {};

INSTANTIATE_TEST_SUITE_P(, Schemes,
                         testing::Values(QuantizationScheme::kRtn, QuantizationScheme::kAwq,
                                         QuantizationScheme::kGptq, QuantizationScheme::kAtom,
                                         QuantizationScheme::kQuarot),
                         [](const auto& info) { return std::string(scheme_name(info.param)); });

// Without rounding nothing is left of the scheme but the order of sums, and Atom's outliers in eight bits.
TEST_P(Schemes, PreparedModelComputesTheSameFunction) {
  for (const TinyModelOptions& model : models()) {
    const TemporaryFolder folder;
    test::write_tiny_llama(folder.path() / "model", model);
    const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
    const std::vector<float> expected = logits_of(test::load_decoder(folder.path() / "model"));
    const Decoder decoder = quantized(checkpoint, folder.path() / "q.vbt", GetParam(), Format::kF32);
    // The embedding is in BF16 again after having been rotated, and attention is in BF16.
    EXPECT_LT(relative_error(logits_of(decoder), expected), 0.03) << model.hidden_size;
  }
}

TEST_P(Schemes, OfModelsWithLayerNormsComputeTheSameFunctionOrAreRefused) {
  for (const char* family : {"gpt2", "starcoder2", "opt"}) {
    const TemporaryFolder folder;
    const TinyModelOptions model{
        .model_type = family, .kv_heads = 4, .seed = 6};  // so that values can be divided by factors
    test::write_tiny_llama(folder.path() / "model", model);
    const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
    if (GetParam() == QuantizationScheme::kQuarot) {
      test::expect_bad_input(
          [&] { quantized(checkpoint, folder.path() / "q.vbt", GetParam(), Format::kF32); },
          {"model", "LayerNorms", "quarot"});
      continue;
    }
    const std::vector<float> expected = logits_of(test::load_decoder(folder.path() / "model"));
    const Decoder decoder = quantized(checkpoint, folder.path() / "q.vbt", GetParam(), Format::kF32);
    EXPECT_LT(relative_error(logits_of(decoder), expected), 0.03) << family;
    const Decoder rounded = quantized(checkpoint, folder.path() / "q4.vbt", GetParam(), Format::kInt4);
    EXPECT_LT(relative_error(logits_of(rounded), expected), 0.5) << family;
  }
}

TEST(QuantizeModel, RoundsExpertsToNearestAndRefusesSchemesThatDoNotKnowThem) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model", {.model_type = "mixtral"});
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
  const Decoder decoder =
      quantized(checkpoint, folder.path() / "q.vbt", QuantizationScheme::kRtn, Format::kF32);
  EXPECT_LT(relative_error(logits_of(decoder), logits_of(test::load_decoder(folder.path() / "model"))), 0.03);
  for (const QuantizationScheme scheme : {QuantizationScheme::kAwq, QuantizationScheme::kGptq,
                                          QuantizationScheme::kAtom, QuantizationScheme::kQuarot}) {
    test::expect_bad_input([&] { quantized(checkpoint, folder.path() / "q.vbt", scheme, Format::kInt4); },
                           {"model", "experts", "rtn"});
  }
}

// Rows of heads in another order, and embeddings of other types.
TEST_P(Schemes, PreparedGgufModelComputesTheSameFunction) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kQ8_0}) {
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "model.gguf";
    test::write_tiny_gguf(file, {.dtype = dtype, .hidden_size = 160, .intermediate_size = 352, .seed = 6});
    Checkpoint checkpoint = open_checkpoint(file);
    checkpoint.tokenizer = {};  // the file has none
    const std::vector<float> expected = logits_of(test::load_decoder(file));
    const Decoder decoder = quantized(checkpoint, folder.path() / "q.vbt", GetParam(), Format::kF32);
    EXPECT_LT(relative_error(logits_of(decoder), expected), 0.03) << dtype_name(dtype);
  }
}

TEST_P(Schemes, FourBitsStayNearTheModel) {
  const TemporaryFolder folder;
  const TinyModelOptions model = models().front();
  test::write_tiny_llama(folder.path() / "model", model);
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
  const std::vector<float> expected = logits_of(test::load_decoder(folder.path() / "model"));
  const Decoder decoder = quantized(checkpoint, folder.path() / "q.vbt", GetParam(), Format::kInt4);
  const double w4a16 = relative_error(logits_of(decoder, Reading::kInt4W4A16), expected);
  const double w4a4 = relative_error(logits_of(decoder, Reading::kInt4W4A4), expected);
  EXPECT_LT(w4a16, 0.45);
  EXPECT_GT(w4a4, w4a16);
  EXPECT_LT(w4a4, 0.9);
}

TEST_P(Schemes, TheSameModelAndTextGiveTheSameBytes) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model", models().front());
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
  quantized(checkpoint, folder.path() / "one.vbt", GetParam(), Format::kInt4);
  quantized(checkpoint, folder.path() / "two.vbt", GetParam(), Format::kInt4);
  EXPECT_EQ(test::read_file(folder.path() / "one.vbt"), test::read_file(folder.path() / "two.vbt"));
}

TEST_P(Schemes, OfThreeBitsUseEightLevelsAndAreFartherFromTheModel) {
  const TemporaryFolder folder;
  const TinyModelOptions model = models().front();
  test::write_tiny_llama(folder.path() / "model", model);
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
  if (GetParam() == QuantizationScheme::kAtom) {
    try {
      quantized(checkpoint, folder.path() / "q3.vbt", GetParam(), Format::kInt4, 3);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_THAT(error.what(), testing::HasSubstr("atom has no 3 bits"));
    }
    return;
  }
  const std::vector<float> expected = logits_of(test::load_decoder(folder.path() / "model"));
  const Decoder four = quantized(checkpoint, folder.path() / "q4.vbt", GetParam(), Format::kInt4);
  const Decoder three = quantized(checkpoint, folder.path() / "q3.vbt", GetParam(), Format::kInt4, 3);
  const double error = relative_error(logits_of(three), expected);
  EXPECT_GT(error, 1.3 * relative_error(logits_of(four), expected));
  EXPECT_LT(error, 0.9);
  const LinearWeight& down = three.weights().layers[1].down;
  for (int64_t column = 0; column < down.columns; ++column) {
    const std::vector<float> row = test::unpacked_column(down.stores.front(), Reading::kInt4W4A16, column);
    for (size_t begin = 0; begin < static_cast<size_t>(down.k); begin += kRoundedGroup) {
      const size_t end = std::min(static_cast<size_t>(down.k), begin + kRoundedGroup);
      EXPECT_LE(std::set<float>(row.data() + begin, row.data() + end).size(), 8u);
    }
  }
  EXPECT_THROW(quantized(checkpoint, folder.path() / "q2.vbt", GetParam(), Format::kInt4, 2), Error);
}

TEST(Atom, RefusesAnOrderThatPointsOutside) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model", models().front());
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
  quantized(checkpoint, folder.path() / "q.vbt", QuantizationScheme::kAtom, Format::kInt4);
  const Container container = open_container(folder.path() / "q.vbt");
  for (const float wrong : {160.0f, -2.0f, 0.5f, 1e30f, std::nanf("")}) {
    std::string bytes = test::read_file(folder.path() / "q.vbt");
    for (const StoredVector& vector : container.header.vectors) {
      if (vector.name != "layers.1.qkv_order") continue;
      std::memcpy(bytes.data() + vector.plane.offset + 12, &wrong, sizeof(wrong));
    }
    folder.write("damaged.vbt", bytes);
    const Container damaged = open_container(folder.path() / "damaged.vbt");
    try {
      load_weights(damaged, {});
      FAIL() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
      EXPECT_THAT(error.what(), testing::HasSubstr("layers.1.qkv_order names inputs that are not there"));
    }
  }
}

TEST(Atom, KeepsTheInputsWithTheLargestSquaresForTheEnd) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model", models().front());
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
  ThreadTeam team(2);
  const MatrixInputs calibration = gather_inputs(checkpoint, some_tokens(200), {}, team);
  const Preparation preparation = prepare_atom(checkpoint, calibration);
  for (const auto& [name, order] : preparation.orders) {
    const std::vector<float>& squares = calibration.at(name).squares;
    ASSERT_EQ(order.size(), squares.size());
    for (size_t i = 1; i < order.size(); ++i) {
      ASSERT_LE(squares[static_cast<size_t>(order[i - 1])], squares[static_cast<size_t>(order[i])]) << name;
    }
  }
}

/// A model some of whose channels are 32 times as large as the others and have weights that are as much
/// smaller, as trained models have it: what they say fits into four bits as badly as what is in a group with
/// them. Every head has values of its own, with biases.
std::filesystem::path write_outlying(const TemporaryFolder& folder) {
  const TinyModelOptions options = {.model_type = "qwen2",
                                    .dtype = DType::kF32,
                                    .hidden_size = 256,
                                    .intermediate_size = 512,
                                    .kv_heads = 4,
                                    .seed = 7};
  const std::filesystem::path model = folder.path() / "model";
  test::write_tiny_llama(model, options);
  std::vector<test::NamedTensor> tensors = test::tiny_tensors(options);
  for (test::NamedTensor& tensor : tensors) {
    const bool norm = tensor.name.ends_with("layernorm.weight");
    const bool reads_norm = std::ranges::any_of(
        std::array{"q_proj.weight", "k_proj.weight", "v_proj.weight", "gate_proj.weight", "up_proj.weight"},
        [&](const char* name) { return tensor.name.ends_with(name); });
    if (!norm && !reads_norm) continue;
    const auto width = static_cast<size_t>(tensor.shape.back());
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      if (i % width % 40 == 0) tensor.values[i] *= norm ? 32.0f : 1.0f / 32.0f;
    }
  }
  folder.write("model/model.safetensors", test::safetensors_file(tensors, DType::kF32));
  return model;
}

TEST(OutlyingInputs, CostLessWithAScheme) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = open_checkpoint(write_outlying(folder));
  const std::vector<float> expected = logits_of(test::load_decoder(folder.path() / "model"));
  std::map<QuantizationScheme, double> narrow;
  std::map<QuantizationScheme, double> wide;
  for (const QuantizationScheme scheme : kQuantizationSchemes) {
    if (scheme == QuantizationScheme::kNone) continue;
    const Decoder decoder = quantized(checkpoint, folder.path() / (std::string(scheme_name(scheme)) + ".vbt"),
                                      scheme, Format::kInt4);
    narrow[scheme] = relative_error(logits_of(decoder, Reading::kInt4W4A4), expected);
    wide[scheme] = relative_error(logits_of(decoder, Reading::kInt4W4A16), expected);
  }
  EXPECT_LT(narrow[QuantizationScheme::kAtom], 0.8 * narrow[QuantizationScheme::kRtn]);
  EXPECT_LT(narrow[QuantizationScheme::kQuarot], 0.8 * narrow[QuantizationScheme::kRtn]);
  EXPECT_LT(wide[QuantizationScheme::kAwq], 0.9 * wide[QuantizationScheme::kRtn]);
  EXPECT_LT(wide[QuantizationScheme::kGptq], 0.9 * wide[QuantizationScheme::kRtn]);
}

// Its factors are far from one here, so that one that is not undone, of a norm, a bias or a row, shows.
TEST(Awq, FactorsUndoOneAnother) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = open_checkpoint(write_outlying(folder));
  const std::vector<float> expected = logits_of(test::load_decoder(folder.path() / "model"));
  const Decoder decoder =
      quantized(checkpoint, folder.path() / "q.vbt", QuantizationScheme::kAwq, Format::kF32);
  EXPECT_LT(relative_error(logits_of(decoder), expected), 0.005);
  const Buffer<float>& norm = decoder.weights().layers[0].attention_norm;
  std::vector<float> own(256);
  checkpoint.tensor("model.layers.0.input_layernorm.weight", {256}).read_row(0, own);
  EXPECT_GT(std::fabs(std::log(norm[0] / own[0]) - std::log(norm[1] / own[1])), 0.3);
}

// Sixteen times the one half and once the other are the outliers' weights in eight bits.
TEST(Atom, HalvesOfAnOutlierMakeEightBits) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model", models().front());
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
  const Decoder decoder =
      quantized(checkpoint, folder.path() / "q.vbt", QuantizationScheme::kAtom, Format::kInt4);
  const LayerWeights& layer = decoder.weights().layers[1];
  const PackedMatrix& store = layer.gate_up.stores.front();
  const TensorView& gate = checkpoint.tensor("model.layers.1.mlp.gate_proj.weight", {352, 160});
  std::vector<float> exact(160);
  for (const int64_t column : {0, 77, 351}) {
    gate.read_row(column, exact);
    const std::vector<float> packed = test::unpacked_column(store, Reading::kInt4W4A16, column);
    const size_t upper = packed.size() - 2 * kOutlierInputs;
    float largest = 0.0f;
    for (size_t i = 0; i < kOutlierInputs; ++i) {
      largest = std::max(largest, std::fabs(exact[static_cast<size_t>(layer.gate_up_order[upper + i])]));
    }
    for (size_t i = 0; i < kOutlierInputs; ++i) {
      const auto input = static_cast<size_t>(layer.gate_up_order[upper + i]);
      ASSERT_NEAR(packed[upper + i] + packed[upper + kOutlierInputs + i], exact[input],
                  0.51f * largest / 119.0f)
          << column << ", " << input;
    }
  }
}

TEST(MatrixInputs, CountsEveryTokenOnceAndKeepsSamples) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  const Checkpoint checkpoint = open_checkpoint(folder.path() / "model");
  ThreadTeam team(2);
  const std::vector<int32_t> tokens = some_tokens(130);
  const MatrixInputs once = gather_inputs(checkpoint, tokens, {.window = 50, .sample_rows = 16}, team);
  const InputStatistics& qkv = once.at("layers.0.qkv");
  EXPECT_EQ(qkv.inputs(), 128);
  EXPECT_EQ(qkv.sample_rows, 16);
  // The first layer sees normed embeddings, whatever the windows: their mean square is known.
  const MatrixInputs other = gather_inputs(checkpoint, tokens, {.window = 30, .sample_rows = 16}, team);
  for (size_t i = 0; i < qkv.squares.size(); ++i) {
    ASSERT_NEAR(qkv.squares[i], other.at("layers.0.qkv").squares[i], 1e-4 * qkv.squares[i]);
  }
  EXPECT_EQ(once.at("head").inputs(), 128);
}

TEST(MatrixInputs, WantsAText) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  ThreadTeam team(1);
  EXPECT_THROW(gather_inputs(open_checkpoint(folder.path() / "model"), {}, {}, team), Error);
  EXPECT_THROW(quantize_model(open_checkpoint(folder.path() / "model"), folder.path() / "q.vbt",
                              {.scheme = QuantizationScheme::kAwq}, team),
               Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "q.vbt"));
}

}  // namespace
}  // namespace verbatim
