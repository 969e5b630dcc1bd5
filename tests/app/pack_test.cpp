#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "container/load.h"
#include "container/pack.h"
#include "support/packed.h"
#include "support/run_program.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"
#include "support/trained_gguf.h"

namespace verbatim {
namespace pack_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::expect_refused;
using test::lines_of;
using test::run_program;
using test::RunResult;
using ::testing::HasSubstr;

constexpr const char* kPrompt = "def fibonacci(n):\n";

int64_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

/// Packs the default model into `name` in the folder.
std::string pack(const test::TemporaryFolder& folder, const std::string& name,
                 const std::vector<std::string>& more = {}) {
  const std::string file = folder.path() / name;
  std::vector<std::string> arguments = {"pack", test::default_model(), "-o", file};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const RunResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(lines_of(result.out).size(), 1u) << result.out;
  EXPECT_TRUE(result.out.starts_with(file + ": ")) << result.out;
  return file;
}

json generate(const std::string& model, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"generate", model, "-p", kPrompt, "-n", "48", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const RunResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out);
}

/// A small model with the default model's vocabulary.
std::string write_model(const test::TemporaryFolder& folder) {
  test::TinyModelOptions options;
  options.vocab_size = 4096;
  const fs::path path = folder.path() / "model";
  test::write_tiny_llama(path, options);
  for (const char* name : {"tokenizer.model", "tokenizer_config.json"}) {
    fs::copy(test::default_model() / name, path / name);
  }
  return path;
}

TEST(PackCommand, MakesAFileThatSaysTheSameInEveryFormat) {
  const test::TemporaryFolder folder;
  const std::string model = write_model(folder);
  const std::string file = folder.path() / "all.vbt";
  const RunResult packed =
      run_program({"pack", model, "-o", file, "--formats", "bf16,mxbf16,bsfp,mxfp4,int4,squeeze4"});
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  for (const std::string format : {"bf16", "mxbf16", "bsfp", "mxfp4", "int4", "squeeze4"}) {
    const std::vector<std::string> options = {"--formats",     format, "--recipe", "plain",
                                              "--temperature", "0.8",  "--seed",   "5"};
    EXPECT_EQ(generate(file, options)["text"], generate(model, options)["text"]) << format;
  }
}

TEST(PackCommand, MakesAFileThatSaysTheSame) {
  const test::TemporaryFolder folder;
  const std::string file = pack(folder, "model.vbt");
  const json packed = generate(file);
  const json loaded = generate(test::default_model());
  EXPECT_EQ(packed["text"], loaded["text"]);
  EXPECT_EQ(packed["recipe"], "auto");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(PackCommand, MakesTheSameFileWithAnyNumberOfThreads) {
  const test::TemporaryFolder folder;
  const std::vector<std::string> formats = {"--formats", "full,mxbf16"};
  const std::string expected = test::read_file(pack(folder, "one.vbt", formats));
  for (const char* threads : {"1", "2", "3"}) {
    const std::string file =
        pack(folder, std::string(threads) + ".vbt", {"--formats", "full,mxbf16", "--threads", threads});
    EXPECT_TRUE(test::read_file(file) == expected) << threads;
  }
}

TEST(PackCommand, TakesGgufFilesWithTheirVocabulary) {
  const auto model = test::draft_gguf();
  const test::TemporaryFolder folder;
  const std::string file = folder.path() / "stories.vbt";
  const RunResult packed = run_program({"pack", model, "-o", file});
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  const auto say = [&](const std::string& name) {
    return run_program({"generate", name, "-p", "Once upon a time", "-n", "60"}).out;
  };
  EXPECT_EQ(say(file), say(model));
  const json inspected = json::parse(run_program({"inspect", file, "--json"}).out);
  EXPECT_EQ(inspected["packed"]["source"], "gguf");
  EXPECT_EQ(inspected["tokenizer"]["kind"], "sentencepiece");
  EXPECT_EQ(inspected["model"]["parameters"], 1311872);
}

TEST(PackCommand, ServesChatAndDemo) {
  const test::TemporaryFolder folder;
  const std::string file = pack(folder, "model.vbt");
  test::RunOptions lines;
  lines.input = "What is 2 + 3?\n";
  const RunResult chat = run_program({"chat", file, "-n", "20"}, lines);
  EXPECT_EQ(chat.exit_code, 0) << chat.err;
  EXPECT_EQ(chat.out, run_program({"chat", test::default_model(), "-n", "20"}, lines).out);
  const RunResult demo = run_program({"demo", file, "-n", "16", "--rounds", "1"});
  EXPECT_EQ(demo.exit_code, 0) << demo.err;
  EXPECT_THAT(demo.out, HasSubstr("the bytes agree"));
}

TEST(PackCommand, PlansWithWhatTheFileHolds) {
  const test::TemporaryFolder folder;
  const std::string file = pack(folder, "lossless.vbt", {"--formats", "mxbf16"});
  EXPECT_EQ(generate(file)["recipe"], "auto");
  EXPECT_EQ(generate(file)["text"], generate(test::default_model())["text"]);
  EXPECT_EQ(generate(file, {"--formats", "full"})["recipe"], "auto");
  expect_refused({"generate", file, "-p", "x", "--recipe", "ml-specqd"}, 1,
                 {"lossless.vbt", "no weights in mxfp4", "verbatim pack", "mxbf16,mxfp4"});
  expect_refused({"generate", file, "-p", "x", "--formats", "bf16"}, 1, {"no weights in bf16", "mxbf16"});
  const std::string lossy = pack(folder, "lossy.vbt", {"--formats", "int4"});
  EXPECT_EQ(generate(lossy, {"--recipe", "plain"})["text"], generate(lossy)["text"]);
  expect_refused({"generate", lossy, "-p", "x", "--formats", "full"}, 1, {"none of which is lossless"});
  expect_refused({"inflate", file, "-o", folder.path() / "larger", "--width", "2"}, 1, {"packed already"});
  expect_refused({"pack", file, "-o", folder.path() / "again.vbt"}, 1, {"packed already"});
}

/// Sensitivities of all of a model's matrices, of very different sizes.
std::vector<test::NamedTensor> made_up_sensitivities(const test::TinyModelOptions& options) {
  std::vector<test::NamedTensor> tensors;
  std::mt19937 generator(3);
  std::normal_distribution<float> exponents(0.0f, 4.0f);
  for (test::NamedTensor& tensor : test::tiny_tensors(options)) {
    if (tensor.shape.size() != 2) continue;
    for (float& value : tensor.values) value = std::exp2(exponents(generator));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

/// The rows of some tensors, one below the other.
std::vector<float> stacked(const std::vector<test::NamedTensor>& tensors,
                           const std::vector<std::string>& names) {
  std::vector<float> values;
  for (const std::string& name : names) {
    const auto tensor = std::ranges::find(tensors, name, &test::NamedTensor::name);
    values.insert(values.end(), tensor->values.begin(), tensor->values.end());
  }
  return values;
}

TEST(PackCommand, GivesEveryWeightItsSensitivityFromTheFile) {
  const test::TemporaryFolder folder;
  const test::TinyModelOptions options;
  const std::string model = folder.path() / "model";
  test::write_tiny_llama(model, options);
  const std::vector<test::NamedTensor> sensitivities = made_up_sensitivities(options);
  const std::string file =
      folder.write("fisher.safetensors", test::safetensors_file(sensitivities, DType::kF32));
  const fs::path without = folder.path() / "without.vbt";
  const fs::path with = folder.path() / "with.vbt";
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"pack", model, "-o", without, "--formats", "full,squeeze4"},
        std::vector<std::string>{"pack", model, "-o", with, "--formats", "full,squeeze4", "--sensitivities",
                                 file}}) {
    const RunResult packed = run_program(arguments);
    ASSERT_EQ(packed.exit_code, 0) << packed.err;
  }
  // The same model as a GGUF file, its heads' rows in another order than the file's.
  test::write_tiny_gguf(folder.path() / "model.gguf", options);
  Checkpoint gguf = open_checkpoint(folder.path() / "model.gguf");
  ASSERT_TRUE(gguf.config.rope_interleaved);
  gguf.tokenizer = {};  // it has no vocabulary
  const SensitivityFile opened = open_sensitivities(file);
  ThreadTeam team(2);
  PackModelOptions packing;
  packing.load.formats = {std::nullopt, Format::kSqueeze4};
  packing.load.sensitivities = &opened;
  const auto twin = pack_model(gguf, folder.path() / "twin.vbt", packing, team);

  const Container plain = open_container(without);
  const Container weighted = open_container(with);
  DecoderWeights plain_weights = load_weights(plain, {});
  DecoderWeights weights = load_weights(weighted, {});
  DecoderWeights twin_weights = load_weights(*twin, {});
  for (const StoredMatrix& matrix : weighted.header.matrices) {
    SCOPED_TRACE(matrix.name);
    const LinearWeight& weight = matrix_of(weights, matrix.name);
    const LinearWeight& other = matrix_of(plain_weights, matrix.name);
    ASSERT_EQ(weight.stores.size(), 2u);
    EXPECT_TRUE(test::same_bytes(weight.stores[0], other.stores[0]));
    EXPECT_FALSE(test::same_bytes(weight.stores[1], other.stores[1]));
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(test::same_bytes(weight.stores[i], matrix_of(twin_weights, matrix.name).stores[i]));
    }
  }
  // Matrices that are packed as one take each tensor's own.
  const std::string layer = "model.layers.1.";
  const std::pair<std::string, std::vector<std::string>> stacks[] = {
      {"layers.1.qkv",
       {layer + "self_attn.q_proj.weight", layer + "self_attn.k_proj.weight",
        layer + "self_attn.v_proj.weight"}},
      {"layers.1.gate_up", {layer + "mlp.gate_proj.weight", layer + "mlp.up_proj.weight"}}};
  for (const auto& [name, parts] : stacks) {
    std::vector<float> values = stacked(test::tiny_tensors(options), parts);
    for (float& value : values) value = to_float(to_bfloat16(value));
    const std::vector<float> importance = stacked(sensitivities, parts);
    const int64_t k = options.hidden_size;
    PackLinearOptions direct;
    direct.formats = {Format::kSqueeze4};
    direct.sensitivities = test::rows_of(importance, k);
    const PackResult expected =
        pack_linear(static_cast<int64_t>(values.size()) / k, k, test::rows_of(values, k), direct, team);
    EXPECT_TRUE(test::same_bytes(matrix_of(weights, name).stores[1], expected.weight.stores.front())) << name;
  }
}

TEST(PackCommand, StartsAtOnce) {
  const test::TemporaryFolder folder;
  EXPECT_LT(generate(pack(folder, "model.vbt"))["seconds"]["load"], 1.0);
}

TEST(PackCommand, RefusesBadInputInOneLine) {
  const test::TemporaryFolder folder;
  const std::string model = folder.path() / "model";
  test::write_tiny_llama(model);
  const std::string file = folder.path() / "new.vbt";
  const auto with_formats = [&](const char* formats) {
    return std::vector<std::string>{"pack", model, "-o", file, "--formats", formats};
  };
  expect_refused(with_formats("full,bf17"), 2, {"\"bf17\"", "full, draft, bf16", "squeeze4"});
  expect_refused(with_formats("mxfp4,full,mxfp4"), 2, {"mxfp4 is there twice"});
  expect_refused({"pack", folder.path() / "absent", "-o", file}, 1, {"absent does not exist"});
  expect_refused({"pack", model, "-o", folder.write("there.vbt", "x")}, 1, {"there.vbt exists already"});
  expect_refused({"pack", model, "-o", folder.path() / "no" / "where.vbt"}, 1, {"does not exist"});
  expect_refused({"pack", model, "-o", "/proc/new.vbt"}, 3, {"cannot write /proc/new.vbt"});
  expect_refused(
      {"pack", model, "-o", file, "--formats", "squeeze3", "--sensitivities", folder.path() / "no"}, 1,
      {"cannot open"});
  expect_refused({"pack", model, "-o", file, "--sensitivities", folder.path() / "no"}, 2,
                 {"--sensitivities", "squeeze3"});
  expect_refused({"pack", model, "-o", file, "--outliers-across", "model"}, 2,
                 {"--outliers-across", "squeeze3"});
  expect_refused({"pack", model, "-o", file, "--formats", "squeeze3", "--outliers-across", "layer"}, 2,
                 {"\"layer\"", "matrix and model"});
  expect_refused({"pack", model, "-o", file, "--outliers", "0.01"}, 2,
                 {"--outliers", "squeeze3", "--formats"});
  expect_refused({"pack", model}, 2, {"--output is required"});
  expect_refused({"pack", model, "-o", file, "--threads", "0"}, 2, {"--threads"});
  EXPECT_EQ(entries(folder.path()), 2);
}

TEST(PackCommand, RefusesDamagedFilesInOneLine) {
  const test::TemporaryFolder folder;
  const std::string model = folder.path() / "model";
  test::write_tiny_llama(model);
  const std::string file = folder.path() / "model.vbt";
  ASSERT_EQ(run_program({"pack", model, "-o", file}).exit_code, 0);
  const std::string whole = test::read_file(file);
  for (const char* command : {"inspect", "generate"}) {
    const auto expect = [&](const std::string& contents, const std::vector<std::string>& parts) {
      std::vector<std::string> arguments = {command, folder.write("bad.vbt", contents)};
      if (arguments[0] == "generate") arguments.insert(arguments.end(), {"-p", "x"});
      expect_refused(arguments, 1, parts);
    };
    expect(whole.substr(0, whole.size() - 1), {"bad.vbt", "truncated"});
    expect(whole.substr(0, 20), {"bad.vbt", "damaged"});
    expect("hello", {"bad.vbt is no packed model"});
    std::string flipped = whole;
    flipped.back() ^= 1;
    expect(flipped, {"bad.vbt", "header is not as written"});
  }
  EXPECT_EQ(run_program({"inspect", file, "--verify"}).exit_code, 0);
  std::string flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  const std::string bad = folder.write("flipped.vbt", flipped);
  EXPECT_EQ(run_program({"inspect", bad}).exit_code, 0);
  expect_refused({"inspect", bad, "--verify"}, 1, {"flipped.vbt", "not as it was written"});
  expect_refused({"inspect", model, "--verify"}, 2, {".vbt"});
}

/// Starts a pack that takes long, waits for its file to grow, and sends it a signal. Returns its exit code.
int interrupt_pack(const fs::path& folder, int signal) {
  const std::string program = test::program();
  const std::string model = test::default_model();
  const std::string file = folder / "model.vbt";
  std::vector<std::string> texts = {
      program, "pack", model, "-o", file, "--formats", "squeeze3,squeeze4,bsfp", "--threads", "1"};
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (entries(folder) == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(child, signal);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(PackCommand, LeavesNothingWhenItIsInterrupted) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const test::TemporaryFolder folder;
    EXPECT_EQ(interrupt_pack(folder.path(), signal), 130);
    EXPECT_EQ(entries(folder.path()), 0);
  }
}

TEST(PackCommand, LeavesNothingUnderTheNameWhenItIsKilled) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(interrupt_pack(folder.path(), SIGKILL), 128 + SIGKILL);
  EXPECT_FALSE(fs::exists(folder.path() / "model.vbt"));
}

TEST(InspectPacked, ShowsFormatsPlanesAndSizes) {
  const test::TemporaryFolder folder;
  const std::string file = pack(folder, "model.vbt", {"--formats", "full,mxfp4,mxbf16"});
  const RunResult text = run_program({"inspect", file, "--verify", "--tensors"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char* part : {"16.00 bits per weight", "4.25 bits per weight", "12.81 bits per weight",
                           "33 matrices in 231 planes", "25,698,816", "tokenizer.model",
                           "all planes are as they were written", "plane 6 of head in mxbf16"}) {
    EXPECT_THAT(text.out, HasSubstr(part));
  }
  const json object = json::parse(run_program({"inspect", file, "--tensors", "--json"}).out);
  const json& formats = object["packed"]["formats"];
  EXPECT_EQ(object["model"]["format"], "vbt");
  EXPECT_EQ(object["model"]["parameters"], 25698816);
  EXPECT_EQ(formats["bf16"]["weights"], 25698816 - 17 * 512);
  EXPECT_EQ(formats["bf16"]["bytes"], 2 * (25698816 - 17 * 512));
  EXPECT_EQ(formats["mxfp4"]["bits_per_weight"], 4.25);
  EXPECT_EQ(object["packed"]["verified"], false);
  EXPECT_EQ(object["memory_bytes"]["full"], formats["bf16"]["bytes"]);
  EXPECT_EQ(object["memory_bytes"]["mxfp4"], formats["mxfp4"]["bytes"]);
  int64_t bytes = 0;
  for (const json& plane : object["planes"]) bytes += plane["bytes"].get<int64_t>();
  EXPECT_LT(bytes, object["model"]["file_bytes"]);
}

}  // namespace
}  // namespace pack_test
}  // namespace verbatim
