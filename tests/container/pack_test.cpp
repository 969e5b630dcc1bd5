#include "container/pack.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "checkpoint/bad_input.h"
#include "container/load.h"
#include "container/support.h"
#include "support/engine_support.h"
#include "verbatim/verbatim.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using test::expect_bad_input;
using test::pack;
using test::TemporaryFolder;
using test::TinyModelOptions;

int64_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

Decoder decoder_of(const fs::path& model, const std::vector<std::string>& formats) {
  ThreadTeam team(2);
  LoadOptions options;
  set_formats(options, formats);
  if (is_packed(model)) {
    const Container container = open_container(model);
    return {container.header.config, load_weights(container, options.formats)};
  }
  const Checkpoint checkpoint = open_checkpoint(model);
  std::vector<std::string> warnings;
  return {checkpoint.config, pack_weights(checkpoint, options, team, warnings)};
}

std::vector<float> logits(const fs::path& model, const std::vector<std::string>& formats) {
  const Decoder decoder = decoder_of(model, formats);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 21; ++i) tokens.push_back((i * 37 + 5) % decoder.config().vocab_size);
  ThreadTeam team(2);
  return test::all_logits(decoder, tokens, 8, Reading::kFull, team);
}

void expect_same_logits(const fs::path& model, const fs::path& file,
                        const std::vector<std::string>& formats) {
  SCOPED_TRACE(model.string() + " " + testing::PrintToString(formats));
  const std::vector<float> expected = logits(model, formats);
  const std::vector<float> actual = logits(file, formats);
  ASSERT_EQ(actual.size(), expected.size());
  EXPECT_EQ(std::memcmp(actual.data(), expected.data(), expected.size() * sizeof(float)), 0);
}

TEST(PackModel, GivesTheLogitsOfTheModelInEveryFormat) {
  const TemporaryFolder folder;
  TinyModelOptions options;
  options.model_type = "qwen2";  // biases
  options.hidden_size = 72;      // sizes that are padded
  options.intermediate_size = 172;
  options.heads = 6;
  options.kv_heads = 2;
  options.head_dim = 12;
  options.vocab_size = 250;
  const fs::path model = folder.path() / "model";
  test::write_tiny_llama(model, options);
  std::vector<std::string> all;
  std::vector<Format> formats = all_formats();
  std::erase(formats, Format::kQ8_0);     // which a model in BF16 cannot be packed in,
  std::erase(formats, Format::kKQuants);  // nor in this
  for (const Format format : formats) all.emplace_back(format_name(format));
  const fs::path file = folder.path() / "all.vbt";
  EXPECT_EQ(pack(model, file, all).formats(), formats);
  for (const std::string& format : all) expect_same_logits(model, file, {format});
  expect_same_logits(model, file, {"full"});
  expect_same_logits(model, file, {});
  expect_same_logits(model, file, {"mxbf16", "bf16", "int4"});
}

TEST(PackModel, HoldsHowPositionsAreScaled) {
  const TemporaryFolder folder;
  int number = 0;
  for (const char* const scaling :
       {R"({"type": "linear", "factor": 3.0})", R"({"type": "dynamic", "factor": 3.0})",
        R"({"rope_type": "yarn", "factor": 3.0, "beta_fast": 2.5, "beta_slow": 0.5, "truncate": false})"}) {
    TinyModelOptions options;
    options.context = 8;  // most of the positions are beyond it
    options.rope_scaling = scaling;
    const fs::path model = folder.path() / std::to_string(number++);
    test::write_tiny_llama(model, options);
    const fs::path file = model.string() + ".vbt";
    EXPECT_EQ(pack(model, file, {"full"}).header.config, open_checkpoint(model).config);
    expect_same_logits(model, file, {"full"});
  }
}

TEST(PackModel, HoldsWhateverTypeAModelIsOf) {
  const TemporaryFolder folder;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    TinyModelOptions options;
    options.dtype = dtype;
    options.tied = dtype == DType::kF16;
    const fs::path model = folder.path() / dtype_name(dtype);
    test::write_tiny_llama(model, options);
    const fs::path file = model.string() + ".vbt";
    EXPECT_EQ(pack(model, file, {"full"}).header.embedding_type, dtype);
    expect_same_logits(model, file, {"full"});
  }
}

// Weights rounded to BF16 or F16 on request must not pass for the model's own.
TEST(PackModel, FullIsTheModelsOwnTypeWhateverStandsBesideIt) {
  const test::TemporaryFolder folder;
  const std::pair<DType, std::vector<std::string>> cases[] = {{DType::kF16, {"bf16", "full"}},
                                                              {DType::kBF16, {"f16", "full"}},
                                                              {DType::kBF16, {"f16", "mxbf16"}},
                                                              {DType::kF32, {"bf16", "f16", "full"}}};
  int number = 0;
  for (const auto& [dtype, formats] : cases) {
    TinyModelOptions options;
    options.dtype = dtype;
    const fs::path model = folder.path() / std::to_string(number);
    const fs::path file = folder.path() / (std::to_string(number++) + ".vbt");
    test::write_tiny_llama(model, options);
    const Container container = test::pack(model, file, formats);
    const Format exact = parse_format(formats.back() == "mxbf16" ? "mxbf16"
                                      : dtype == DType::kF16     ? "f16"
                                      : dtype == DType::kBF16    ? "bf16"
                                                                 : "f32",
                                      "test");
    for (const StoredMatrix& matrix : container.header.matrices) {
      ASSERT_NE(matrix.find_exact(), nullptr);
      EXPECT_EQ(matrix.find_exact()->format, exact) << matrix.name;
      EXPECT_EQ(matrix.stores.size(), formats.size());
    }
    const DecoderWeights weights = load_weights(container, {});
    EXPECT_EQ(weights.head.resolve(Reading::kFull), readings(exact).front());
  }
}

TEST(PackModel, TakesGgufFiles) {
  const TemporaryFolder folder;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_K}) {
    TinyModelOptions options;  // a Llama, whose rows the format permutes
    options.dtype = dtype;
    if (dtype == DType::kQ4_K) {
      options.value_dtype = DType::kQ6_K;
      options.hidden_size = 256;
      options.heads = 8;
    }
    const fs::path model = folder.path() / (dtype_name(dtype) + ".gguf");
    test::write_tiny_gguf(model, options);
    const fs::path file = model.string() + ".vbt";
    Checkpoint checkpoint = open_checkpoint(model);
    EXPECT_TRUE(checkpoint.config.rope_interleaved);
    checkpoint.tokenizer = {};  // these files have no vocabulary
    ThreadTeam team(2);
    PackModelOptions packing;
    packing.load.formats = {std::nullopt, Format::kMxfp4};
    const auto container = pack_model(checkpoint, file, packing, team);
    EXPECT_EQ(container->header.source, "gguf");
    EXPECT_FALSE(container->header.config.rope_interleaved);
    expect_same_logits(model, file, {"full"});
    expect_same_logits(model, file, {"full", "mxfp4"});
  }
}

TEST(PackModel, GivesTheSameBytesEveryTime) {
  const TemporaryFolder folder;
  const fs::path model = folder.path() / "model";
  test::write_tiny_llama(model, {.shards = 2, .nan_weight = true});
  const std::vector<std::string> formats = {"full", "mxbf16", "bsfp", "squeeze4", "int4"};
  pack(model, folder.path() / "one.vbt", formats, 1);
  const std::string expected = test::read_file(folder.path() / "one.vbt");
  for (const int threads : {1, 2, 5}) {
    const fs::path again = folder.path() / ("again" + std::to_string(threads) + ".vbt");
    pack(model, again, formats, threads);
    EXPECT_EQ(test::read_file(again), expected) << threads;
  }
  fs::rename(model, folder.path() / "elsewhere");
  pack(folder.path() / "elsewhere", folder.path() / "moved.vbt", formats);
  EXPECT_EQ(test::read_file(folder.path() / "moved.vbt"), expected);
}

TEST(PackModel, PutsPlanesOnPagesWithZerosBetween) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  const Container container =
      pack(folder.path() / "model", folder.path() / "model.vbt", {"mxbf16", "squeeze3"});
  std::string bytes = test::read_file(folder.path() / "model.vbt");
  for (const auto& [name, plane] : all_planes(container.header)) {
    EXPECT_EQ(plane.offset % kPageAlignment, 0u) << name;
    std::fill_n(bytes.begin() + static_cast<int64_t>(plane.offset), plane.bytes, '\0');
  }
  const size_t header = bytes.rfind("{\"config\"");
  EXPECT_EQ(bytes.find_first_not_of('\0', kPreambleBytes), header);
  verify_container(container, {});
}

TEST(PackModel, MapsItsPlanes) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  const Container container = pack(folder.path() / "model", folder.path() / "model.vbt", {"bf16", "mxbf16"});
  const DecoderWeights weights = load_weights(container, {});
  ASSERT_EQ(weights.head.stores.size(), 2u);
  for (const PackedMatrix& store : weights.head.stores) {
    for (const Plane& plane : store.planes) {
      EXPECT_GE(plane.as<const std::byte>(), container.bytes.data());
      EXPECT_LE(plane.as<const std::byte>() + plane.size(), container.bytes.data() + container.bytes.size());
    }
  }
}

TEST(PackModel, RemembersWarningsUnderTheNewName) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model", {.nan_weight = true});
  const fs::path file = folder.path() / "model.vbt";
  pack(folder.path() / "model", file, {"full"});
  const Model model = Model::load(file);
  ASSERT_EQ(model.warnings().size(), 1u);
  EXPECT_TRUE(model.warnings()[0].starts_with(file.string() +
                                              ": tensor model.layers.0.mlp.down_proj.weight holds NaN"))
      << model.warnings()[0];
}

TEST(PackModel, LeavesNothingWhenItIsCancelledOrFails) {
  const TemporaryFolder folder;
  const TemporaryFolder target;
  const fs::path model = folder.path() / "model";
  test::write_tiny_llama(model);
  ThreadTeam team(2);
  PackModelOptions options;
  for (int after = 0; after < 10; ++after) {
    int asked = 0;
    options.cancelled = [&] { return asked++ == after; };
    EXPECT_EQ(pack_model(open_checkpoint(model), target.path() / "x.vbt", options, team), std::nullopt);
    EXPECT_EQ(entries(target.path()), 0);
  }
  options.cancelled = {};
  test::write_tiny_llama(folder.path() / "f16", {.dtype = DType::kF16});
  options.load.formats = {Format::kMxbf16};  // which F16 does not fit
  expect_bad_input(
      [&] { pack_model(open_checkpoint(folder.path() / "f16"), target.path() / "x.vbt", options, team); },
      {"mxbf16"});
  EXPECT_EQ(entries(target.path()), 0);
}

TEST(PackModel, LeavesNothingWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  const TemporaryFolder target;
  test::write_tiny_llama(folder.path() / "model");
  // A limit on the size of files fails as a full disk does.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ThreadTeam team(1);
  for (const rlim_t limit : {rlim_t{1}, rlim_t{5000}, rlim_t{200000}}) {
    const rlimit lower{limit, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &lower);
    std::optional<ErrorKind> kind;
    std::string message;
    try {
      pack_model(open_checkpoint(folder.path() / "model"), target.path() / "x.vbt", {}, team);
    } catch (const Error& error) {
      kind = error.kind();
      message = error.what();
    }
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(kind, ErrorKind::kMachine);
    EXPECT_NE(message.find("cannot write"), std::string::npos) << message;
    EXPECT_EQ(entries(target.path()), 0);
  }
  std::signal(SIGXFSZ, handler);
}

TEST(LoadWeights, SaysWhichFormatIsMissing) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  const Container container =
      pack(folder.path() / "model", folder.path() / "model.vbt", {"int4", "squeeze3"});
  EXPECT_FALSE(container.exact());
  expect_bad_input([&] { load_weights(container, {Format::kMxfp4}); },
                   {"model.vbt", "no weights in mxfp4", "int4, squeeze3", "--formats int4,squeeze3,mxfp4"});
  expect_bad_input([&] { load_weights(container, {std::nullopt}); }, {"lossless", "--formats full"});
  EXPECT_EQ(load_weights(container, {}).head.stores.size(), 2u);
  EXPECT_EQ(load_weights(container, {Format::kSqueeze3}).head.stores.front().format, Format::kSqueeze3);
}

TEST(OpenCheckpoint, RefusesWhatIsPacked) {
  const TemporaryFolder folder;
  test::write_tiny_llama(folder.path() / "model");
  const fs::path file = folder.path() / "model.bin";
  pack(folder.path() / "model", file, {"full"});
  EXPECT_TRUE(is_packed(file));  // by its first bytes
  expect_bad_input([&] { open_checkpoint(file); }, {"packed already"});
  expect_bad_input([&] { open_container(folder.write("text.vbt", "hello")); },
                   {"text.vbt is no packed model"});
  expect_bad_input([&] { open_container(folder.write("empty.vbt", "")); }, {"empty"});
  EXPECT_FALSE(is_packed(folder.path() / "absent.vbt"));
}

}  // namespace
}  // namespace verbatim
