#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/model_access.h"
#include "kv/dense.h"
#include "support/engine_support.h"
#include "support/run_program.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "support/trained_gguf.h"
#include "verbatim/verbatim.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::run_program;
using test::RunOptions;
using test::RunResult;
using ::testing::HasSubstr;

json inspect_json(const std::string& model, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"inspect", model, "--json"});
  const RunResult result = run_program(more);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out);
}

/// What the weights of a loaded model really take.
struct PackedBytes {
  int64_t full = 0;
  int64_t mxfp4 = 0;
  void add(const LinearWeight& weight) {
    full += weight.store(Reading::kFull).bytes();
    mxfp4 += weight.find(Format::kMxfp4)->bytes();
  }
};

void expect_memory_as_packed(const std::string& path) {
  const Model model = test::load_model(path);
  PackedBytes packed;
  for (const LayerWeights& layer : data_of(model).decoder.weights().layers) {
    for (const LinearWeight* weight : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down}) {
      packed.add(*weight);
    }
  }
  packed.add(data_of(model).decoder.weights().head);
  const DenseCache cache(data_of(model).decoder.cache_shape(), model.context());
  const json memory = inspect_json(path)["memory_bytes"];
  EXPECT_EQ(memory["full"], packed.full);
  EXPECT_EQ(memory["pass"], packed.full);
  EXPECT_EQ(memory["mxfp4"], packed.mxfp4);
  EXPECT_EQ(memory["kv_per_token"], cache.bytes_per_position());
  EXPECT_EQ(memory["kv_context"], cache.bytes_per_position() * cache.capacity());
}

TEST(Inspect, ShowsTheDefaultModel) {
  const RunResult result = run_program({"inspect", test::default_model()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const char* part :
       {"llama", "25,698,816", "8 heads of 64, 4 for keys and values", "1024 tokens",
        "theta 10000, no scaling", "BF16", "sentencepiece", "1, 2", "this machine",
        "with weights and a context of 256 tokens", "what to expect here", "nested            fits"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(Inspect, JsonHoldsTheSame) {
  const json object = inspect_json(test::default_model());
  EXPECT_EQ(object["model"]["format"], "safetensors");
  EXPECT_EQ(object["model"]["parameters"], 25698816);
  EXPECT_EQ(object["model"]["layers"], 8);
  EXPECT_EQ(object["model"]["kv_heads"], 4);
  EXPECT_EQ(object["model"]["tied_embeddings"], true);
  EXPECT_EQ(object["model"]["sliding_window"], nullptr);
  EXPECT_EQ(object["dtypes"]["BF16"]["tensors"], 74);
  EXPECT_EQ(object["dtypes"]["BF16"]["bytes"], 2 * 25698816);
  EXPECT_EQ(object["tokenizer"]["size"], 4096);
  EXPECT_EQ(object["tokenizer"]["chat_format"], "plain");
  EXPECT_GE(object["machine"]["threads"], 1);
  EXPECT_GT(object["outlook"]["most_tokens_per_second"], 0);
  EXPECT_EQ(object["outlook"]["memory"].back()["context"], 1024);
  EXPECT_EQ(object["outlook"]["recipes"][0]["recipe"], "plain");
  EXPECT_THAT(object["machine"]["threads_reason"].get<std::string>(), HasSubstr("physical core"));
  EXPECT_FALSE(object.contains("tensors"));
}

TEST(Inspect, ShowsTheMemoryOfContextsThatAreAsked) {
  const json memory = inspect_json(test::default_model(), {"--contexts", "100,5000"})["outlook"]["memory"];
  ASSERT_EQ(memory.size(), 2);
  EXPECT_EQ(memory[1]["context"], 5000);
  EXPECT_GT(memory[1]["bytes"], memory[0]["bytes"]);
}

TEST(Inspect, FindsTheMemoryThatPackingTakes) {
  expect_memory_as_packed(test::default_model());
  const test::TemporaryFolder folder;
  test::TinyModelOptions options;  // sizes that need padding, and an output matrix of its own
  options.hidden_size = 80;
  options.head_dim = 20;
  options.vocab_size = 250;
  for (const DType dtype : {DType::kF16, DType::kF32}) {
    options.dtype = dtype;
    const auto path = folder.path() / dtype_name(dtype);
    test::write_tiny_llama(path, options);
    expect_memory_as_packed(path);
  }
}

TEST(Inspect, ShowsGgufFilesTensorByTensor) {
  const auto file = test::draft_gguf();
  const RunResult result = run_program({"inspect", file, "--tensors"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"gguf", "1,311,872", "F32", "model.layers.3.mlp.down_proj.weight", "128 x 384"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  const json object = inspect_json(file, {"--tensors"});
  EXPECT_EQ(object["tensors"].size(), 38u);
  EXPECT_EQ(object["tensors"][0]["shape"], json({4096, 128}));
  EXPECT_EQ(object["tensors"][0]["bytes"], 4096 * 128 * 4);
}

TEST(Inspect, SaysWhenAModelHasNoVocabulary) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path(), {.model_type = "mistral", .sliding_window = 64});
  const RunResult result = run_program({"inspect", folder.path()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("none: text cannot be encoded"));
  EXPECT_THAT(result.out, HasSubstr("64 tokens"));
  const json object = inspect_json(folder.path());
  EXPECT_EQ(object["tokenizer"], nullptr);
  EXPECT_EQ(object["model"]["sliding_window"], 64);
}

TEST(Inspect, NamesTheLayersThatAreUnlikeTheOthers) {
  const test::TemporaryFolder folder;
  const auto shown = [&](int32_t layers) {
    test::write_tiny_llama(folder.path(), {.model_type = "smollm3", .layers = layers});
    return run_program({"inspect", folder.path()}).out;
  };
  EXPECT_THAT(shown(4), HasSubstr("except in layer 3\n"));
  EXPECT_THAT(shown(8), HasSubstr("except in layers 3, 7\n"));
}

TEST(Inspect, ShowsTheSparsePartsOfAPackedFile) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  std::vector<test::NamedTensor> tensors = test::tiny_tensors({});
  std::erase_if(tensors, [](const test::NamedTensor& tensor) { return tensor.shape.size() != 2; });
  for (test::NamedTensor& tensor : tensors) {
    for (float& value : tensor.values) value *= value;
  }
  const std::string given = folder.write("fisher.safetensors", test::safetensors_file(tensors, DType::kF32));
  const std::string file = folder.path() / "model.vbt";
  ASSERT_EQ(run_program({"pack", folder.path() / "model", "-o", file, "--formats", "squeeze3",
                         "--sensitivities", given})
                .exit_code,
            0);
  const RunResult text = run_program({"inspect", file, "--tensors", "--sensitivities", given});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char* part : {"sparse part of squeeze3", "kept apart", "columns have",
                           "% of the sensitivity of all weights", "layers.1.down"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  const json sparse = inspect_json(file, {"--sensitivities", given})["packed"]["sparse"]["squeeze3"];
  EXPECT_GT(sparse["entries"], 0);
  EXPECT_GT(sparse["sensitivity_share"], 0.0);
  for (const json& matrix : sparse["matrices"]) {
    // Of even noise from -a to a, where a is the matrix's own, the largest squares are three times the mean.
    const double apart = matrix["entries"].get<double>() / matrix["weights"].get<double>();
    EXPECT_NEAR(matrix["sensitivity_share"].get<double>() / apart, 3.0, 0.1) << matrix["name"];
  }
  EXPECT_EQ(inspect_json(file)["packed"]["sparse"]["squeeze3"]["sensitivity_share"], nullptr);
  EXPECT_EQ(run_program({"inspect", folder.path() / "model", "--sensitivities", given}).exit_code, 2);
}

TEST(Inspect, HonoursTheForcedMachinePath) {
  RunOptions options;
  options.environment = {{"VERBATIM_ISA", "scalar"}};
  const RunResult result = run_program({"inspect", test::default_model(), "--json"}, options);
  EXPECT_EQ(json::parse(result.out)["machine"]["kernels"], "scalar");
}

TEST(Inspect, SaysWhetherTheBytesAreThoseOfEveryMachine) {
  const json usual = inspect_json(test::default_model())["machine"];
  EXPECT_EQ(usual["portable"], usual["kernels"] == usual["portable_kernels"]);
  RunOptions options;
  options.environment = {{"VERBATIM_PORTABLE", "1"}};
  for (const RunResult& result : {run_program({"inspect", test::default_model(), "--json", "--portable"}),
                                  run_program({"inspect", test::default_model(), "--json"}, options)}) {
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const json machine = json::parse(result.out)["machine"];
    EXPECT_EQ(machine["portable"], true);
    EXPECT_EQ(machine["kernels"], usual["portable_kernels"]);
  }
}

}  // namespace
}  // namespace verbatim
