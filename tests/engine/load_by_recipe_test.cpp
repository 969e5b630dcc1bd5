#include <gtest/gtest.h>

#include "engine/model_access.h"
#include "speculation/stores.h"
#include "support/engine_support.h"
#include "support/packed.h"
#include "support/speculative_text.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using Names = std::vector<std::string>;

class LoadByRecipe : public testing::Test {
 protected:
  LoadByRecipe() { test::measure_apart(); }

  /// A tiny model with a vocabulary of bytes, as GGUF.
  std::filesystem::path model_in(DType dtype) {
    test::TinyModelOptions options = test::TinyModelOptions();
    options.dtype = dtype;
    options.byte_vocabulary = true;
    options.vocab_size = 260;
    const auto file = folder_.path() / (dtype_name(dtype) + ".gguf");
    test::write_tiny_gguf(file, options);
    return file;
  }

  /// A model whose matrices are as those of Q4_K_M files.
  static test::TinyModelOptions k_quants() {
    test::TinyModelOptions options;
    options.dtype = DType::kQ4_K;
    options.value_dtype = DType::kQ6_K;
    options.hidden_size = 256;
    options.heads = 8;
    options.byte_vocabulary = true;
    options.vocab_size = 260;
    return options;
  }

  test::TemporaryFolder folder_;
};

Names stores_of(const Model& model) {
  Names names;
  for (const PackedMatrix& store : data_of(model).decoder.weights().head.stores) {
    names.emplace_back(format_name(store.format));
  }
  return names;
}

std::string text_of(const Model& model, const Recipe& recipe) {
  Session session(model, 96, 1);
  GenerateOptions options;
  options.max_tokens = 48;
  options.ignore_eos = true;
  return session.generate(model.encode("abcabcabc"), options, recipe).text;
}

TEST_F(LoadByRecipe, ARouterInF32KeepsAMixtureOfExpertsInBf16FromNothing) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    test::write_tiny_gguf(folder_.path() / "mixture.gguf", {.model_type = "mixtral", .dtype = dtype});
    const Checkpoint checkpoint = open_checkpoint(folder_.path() / "mixture.gguf");
    EXPECT_EQ(weight_source(checkpoint).all_bf16, dtype == DType::kBF16);
  }
  test::write_tiny_gguf(
      folder_.path() / "mixture.gguf",
      {.model_type = "mixtral", .dtype = DType::kBF16, .vocab_size = 260, .byte_vocabulary = true});
  const Model model = Model::load(folder_.path() / "mixture.gguf", {.recipe = "nested", .threads = 1});
  EXPECT_EQ(stores_of(model), Names{"mxbf16"});
  EXPECT_EQ(text_of(model, load_recipe("nested")), text_of(model, load_recipe("plain")));
}

TEST_F(LoadByRecipe, TheDefaultRecipeRunsOnEveryTypeOfCheckpoint) {
  const std::pair<DType, Names> cases[] = {{DType::kBF16, {"bf16", "mxfp4"}},
                                           {DType::kF16, {"f16", "mxfp4"}},
                                           {DType::kF32, {"f32", "mxfp4"}},
                                           {DType::kQ8_0, {"q8_0"}}};
  for (const auto& [dtype, stores] : cases) {
    SCOPED_TRACE(dtype_name(dtype));
    const std::filesystem::path file = model_in(dtype);
    const Model model = Model::load(file, {.recipe = "auto", .threads = 1});
    EXPECT_EQ(stores_of(model), stores);
    const Model plain = Model::load(file, {.threads = 1});
    EXPECT_EQ(text_of(model, load_recipe("auto")), text_of(plain, load_recipe("plain")));
  }
}

TEST_F(LoadByRecipe, AModelInQ8_0IsVerifiedInItsOwnCodesByEveryRecipe) {
  const std::filesystem::path file = model_in(DType::kQ8_0);
  const Model plain = Model::load(file, {.threads = 1});
  EXPECT_EQ(stores_of(plain), Names{"q8_0"});
  const std::string expected = text_of(plain, load_recipe("plain"));
  for (const char* const name : {"ngram", "ml-specqd", "self-int4", "early-exit"}) {
    const Model model = Model::load(file, {.recipe = name, .threads = 1});
    EXPECT_EQ(stores_of(model).front(), "q8_0") << name;
    EXPECT_EQ(text_of(model, load_recipe(name)), expected) << name;
  }
  EXPECT_EQ(stores_of(Model::load(file, {.formats = {"f32"}})), Names{"f32"});
  EXPECT_THROW(Model::load(model_in(DType::kF16), {.formats = {"q8_0"}}), Error);
}

// The upper halves of its own codes are the drafter, so no copy of the weights is made.
TEST_F(LoadByRecipe, AModelInQ8_0DraftsWithTheUpperHalvesOfItsCodes) {
  const std::filesystem::path file = model_in(DType::kQ8_0);
  const Model model = Model::load(file, {.recipe = "auto", .threads = 1});
  EXPECT_EQ(stores_of(model), Names{"q8_0"});
  EXPECT_EQ(with_stores_of(load_recipe("auto"), data_of(model).decoder, nullptr).levels.front().reading,
            "q8_0-draft");
  const auto toml = folder_.write("mine.toml",
                                  "name = \"mine\"\nsummary = \"s\"\nsource = \"t\"\n[drafter]\nkind = "
                                  "\"self\"\nreading = \"q8_0-draft\"\n[drafter.stop]\nlength = 5\n");
  const Recipe mine = load_recipe(toml.string());
  const Model own = Model::load(file, {.recipes = {mine}, .threads = 1});
  EXPECT_EQ(stores_of(own), Names{"q8_0"});
  EXPECT_EQ(text_of(own, mine), text_of(own, load_recipe("plain")));
}

TEST_F(LoadByRecipe, AModelInKQuantsIsVerifiedInItsOwnBlocksByEveryRecipe) {
  test::TinyModelOptions options = k_quants();
  const auto file = folder_.path() / "k-quants.gguf";
  test::write_tiny_gguf(file, options);
  const Model plain = Model::load(file, {.threads = 1});
  EXPECT_EQ(stores_of(plain), Names{"k-quants"});
  const std::string expected = text_of(plain, load_recipe("plain"));
  for (const char* const name : {"auto", "ngram", "ml-specqd", "self-int4", "early-exit"}) {
    const Model model = Model::load(file, {.recipe = name, .threads = 1});
    EXPECT_EQ(stores_of(model).front(), "k-quants") << name;
    EXPECT_EQ(text_of(model, load_recipe(name)), expected) << name;
  }
}

// Its own blocks with activations of eight bits are the drafter, so no copy of the weights is made.
TEST_F(LoadByRecipe, AModelInKQuantsDraftsWithItsOwnBlocks) {
  const auto file = folder_.path() / "k-quants.gguf";
  test::write_tiny_gguf(file, k_quants());
  const Model model = Model::load(file, {.recipe = "auto", .threads = 1});
  EXPECT_EQ(stores_of(model), Names{"k-quants"});
  EXPECT_EQ(with_stores_of(load_recipe("auto"), data_of(model).decoder, nullptr).levels.front().reading,
            "k-quants-a8");
  const auto toml = folder_.write("mine.toml",
                                  "name = \"mine\"\nsummary = \"s\"\nsource = \"t\"\n[drafter]\nkind = "
                                  "\"self\"\nreading = \"k-quants-a8\"\n[drafter.stop]\nlength = 5\n");
  const Recipe mine = load_recipe(toml.string());
  const Model own = Model::load(file, {.recipes = {mine}, .threads = 1});
  EXPECT_EQ(stores_of(own), Names{"k-quants"});
  EXPECT_EQ(text_of(own, mine), text_of(own, load_recipe("plain")));
}

TEST_F(LoadByRecipe, AMixtureOfExpertsInKQuantsDraftsWithItsOwnBlocks) {
  for (const char* const type : {"mixtral", "qwen3_moe"}) {
    test::TinyModelOptions options = k_quants();
    options.model_type = type;
    options.intermediate_size = 512;
    options.expert_down_dtype = DType::kQ6_K;
    const auto file = folder_.path() / (std::string(type) + ".gguf");
    test::write_tiny_gguf(file, options);
    const Model model = Model::load(file, {.recipe = "auto", .threads = 1});
    const DecoderWeights& weights = data_of(model).decoder.weights();
    each_matrix(weights, [](const LinearWeight& matrix) {
      ASSERT_EQ(matrix.stores.size(), 1u);
      EXPECT_EQ(matrix.stores.front().format, Format::kKQuants);
    });
    EXPECT_EQ(with_stores_of(load_recipe("auto"), data_of(model).decoder, nullptr).levels.front().reading,
              "k-quants-a8");
    const auto toml = folder_.write("mine.toml",
                                    "name = \"mine\"\nsummary = \"s\"\nsource = \"t\"\n[drafter]\nkind = "
                                    "\"self\"\nreading = \"k-quants-a8\"\n[drafter.stop]\nlength = 5\n");
    const std::string expected = text_of(model, load_recipe("plain"));
    EXPECT_EQ(text_of(model, load_recipe("auto")), expected) << type;
    EXPECT_EQ(text_of(model, load_recipe(toml.string())), expected) << type;
  }
}

// The head alone has the format that the recipe drafts from.
TEST_F(LoadByRecipe, ARecipeIsRefusedWhereAnyMatrixLacksItsFormat) {
  test::TinyModelOptions options = k_quants();
  options.dtype = DType::kQ8_0;
  options.value_dtype.reset();
  options.head_dtype = DType::kQ6_K;
  const auto file = folder_.path() / "head.gguf";
  test::write_tiny_gguf(file, options);
  const Model model = Model::load(file, {.threads = 1});
  EXPECT_EQ(stores_of(model), Names{"k-quants"});
  const auto toml = folder_.write("mine.toml",
                                  "name = \"mine\"\nsummary = \"s\"\nsource = \"t\"\n[drafter]\nkind = "
                                  "\"self\"\nreading = \"k-quants-a8\"\n");
  try {
    require_stores(load_recipe(toml.string()), data_of(model).decoder.weights());
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("k-quants"), std::string::npos) << error.what();
  }
}

// A head in Q8_0 drafts with the upper halves of its codes; one in F16 holds no draft and gets a copy.
TEST_F(LoadByRecipe, AModelOfSeveralTypesDraftsWithWhatEachMatrixHas) {
  const std::pair<DType, Names> cases[] = {{DType::kQ8_0, {"q8_0"}}, {DType::kF16, {"f16", "mxfp4"}}};
  for (const auto& [dtype, stores] : cases) {
    SCOPED_TRACE(dtype_name(dtype));
    test::TinyModelOptions options = k_quants();
    options.head_dtype = dtype;
    const auto file = folder_.path() / "partly.gguf";
    test::write_tiny_gguf(file, options);
    const Model plain = Model::load(file, {.threads = 1});
    EXPECT_EQ(stores_of(plain), Names{stores.front()});
    const Model model = Model::load(file, {.recipe = "auto", .threads = 1});
    EXPECT_EQ(stores_of(model), stores);
    const DecoderWeights& weights = data_of(model).decoder.weights();
    EXPECT_EQ(weights.layers.front().down.stores.size(), 1u);
    EXPECT_EQ(with_stores_of(load_recipe("auto"), data_of(model).decoder, nullptr).levels.front().reading,
              "draft");
    const std::string expected = text_of(plain, load_recipe("plain"));
    EXPECT_EQ(text_of(model, load_recipe("plain")), expected);
    EXPECT_EQ(text_of(model, load_recipe("auto")), expected);
  }
}

TEST_F(LoadByRecipe, ARecipeMayDraftWithWhatEachMatrixHas) {
  const auto toml = folder_.write("mine.toml",
                                  "name = \"mine\"\nsummary = \"s\"\nsource = \"t\"\n[drafter]\nkind = "
                                  "\"self\"\nreading = \"draft\"\n[drafter.stop]\nlength = 5\n");
  const Recipe mine = load_recipe(toml.string());
  EXPECT_EQ(mine.formats(), (Names{"full", "draft"}));
  const std::filesystem::path file = model_in(DType::kF16);
  const Model model = Model::load(file, {.recipes = {mine}, .threads = 1});
  EXPECT_EQ(stores_of(model), (Names{"f16", "mxfp4"}));
  EXPECT_EQ(text_of(model, mine), text_of(model, load_recipe("plain")));
  const Model plain = Model::load(file, {.threads = 1});
  EXPECT_THROW(require_stores(mine, data_of(plain).decoder.weights()), Error);
  const auto packed = folder_.path() / "packed.vbt";
  ASSERT_TRUE(pack_model(file, packed, {.formats = {"full", "draft"}}));
  const Model mapped = Model::load(packed, {.recipes = {mine}, .threads = 1});
  EXPECT_EQ(text_of(mapped, mine), text_of(model, mine));
}

TEST_F(LoadByRecipe, ARecipeMayBeAnObjectAFileOrAName) {
  const std::filesystem::path file = model_in(DType::kBF16);
  const auto toml = folder_.write("mine.toml",
                                  "name = \"mine\"\nsummary = \"s\"\nsource = \"t\"\n[drafter]\nkind = "
                                  "\"self\"\nreading = \"int4-w4a8\"\n");
  const Recipe mine = load_recipe(toml.string());
  EXPECT_EQ(stores_of(Model::load(file, {.recipe = toml.string()})), (Names{"bf16", "int4"}));
  EXPECT_EQ(stores_of(Model::load(file, {.recipes = {mine}})), (Names{"bf16", "int4"}));
  EXPECT_EQ(stores_of(Model::load(file, {.recipe = "ml-specqd", .recipes = {mine}})),
            (Names{"bf16", "mxfp4", "int4"}));
}

TEST_F(LoadByRecipe, FormatsThatAreNamedCountMoreThanRecipes) {
  EXPECT_EQ(stores_of(Model::load(model_in(DType::kBF16), {.recipe = "auto", .formats = {"int8"}})),
            Names{"int8"});
}

TEST_F(LoadByRecipe, AnUnknownRecipeOrOneOfAnotherSchemeIsRefused) {
  EXPECT_THROW(Model::load(model_in(DType::kBF16), {.recipe = "no-such-recipe"}), Error);
  EXPECT_THROW(Model::load(model_in(DType::kBF16), {.recipe = "qspec-atom"}), Error);
}

TEST_F(LoadByRecipe, TheDraftModelIsLoadedInWhatItsLevelReads) {
  const std::filesystem::path file = model_in(DType::kF16);
  EXPECT_EQ(stores_of(Model::load(file, {.recipe = "auto", .drafts = true})), Names{"f16"});
  EXPECT_EQ(stores_of(Model::load(file, {.recipe = "ml-specqd-2", .drafts = true})), Names{"mxfp4"});
}

TEST_F(LoadByRecipe, RecipesBuiltInCodeAreValidatedWhereverTheyAreGiven) {
  const std::filesystem::path file = model_in(DType::kBF16);
  Recipe recipe = load_recipe("ml-specqd");
  recipe.levels[0].length = 65;
  EXPECT_THROW(validate(recipe), Error);
  EXPECT_THROW(Model::load(file, {.recipes = {recipe}}), Error);
  const Model model = Model::load(file, {.recipe = "ml-specqd", .threads = 1});
  Session session(model, 64, 1);
  Engine engine(model, {.max_batch = 1, .capacity = 64, .threads = 1});
  const auto message_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
      return error.what();
    }
    return "nothing was thrown";
  };
  const std::string expected = "recipe ml-specqd: \"length\" must be a number from 1 to 64";
  EXPECT_EQ(message_of([&] { session.generate({5}, {}, recipe); }), expected);
  EXPECT_EQ(message_of([&] { engine.submit({{5}, {}, recipe}); }), expected);
  EXPECT_EQ(message_of([&] { session.prepare(recipe); }), expected);
  EXPECT_EQ(message_of([&] { engine.prepare(recipe); }), expected);
}

TEST(FormatsFor, FavourACopyWhereTheMachineDoes) {
  const WeightSource bf16{.all_bf16 = true};
  const auto of = [&](const std::vector<std::string>& recipes) {
    std::vector<Recipe> loaded;
    for (const std::string& name : recipes) loaded.push_back(load_recipe(name));
    return formats_for(loaded, bf16, ModelRole::kTarget, FavouredStore::kCopy);
  };
  EXPECT_EQ(of({"auto"}), (Names{"full", "mxfp4"}));
  EXPECT_EQ(of({"plain"}), Names{"full"});
  EXPECT_EQ(of({"nested"}), Names{"mxbf16"});  // which says itself what it drafts from
  EXPECT_EQ(of({"nested", "auto"}), Names{"mxbf16"});
}

TEST(FavouredStore, IsACopyThatFitsWhereUnpackingCosts) {
  constexpr int64_t kWeights = 1'000'000'000;
  StoreCosts slow;
  slow.bf16.fill(1.0);
  slow.nested.fill(1.0);
  const StoreCosts equal = slow;
  slow.nested[2] = 1.2;  // of 8 rows
  const auto say = [](const StoreCosts& costs) { return [costs] { return costs; }; };
  EXPECT_EQ(favoured_store(kWeights, std::nullopt, say(slow)), FavouredStore::kCopy);
  EXPECT_EQ(favoured_store(kWeights, std::nullopt, say(equal)), FavouredStore::kNested);
  EXPECT_EQ(favoured_store(kWeights, 4'000'000'000, say(slow)), FavouredStore::kCopy);
  // Where a copy does not fit there is nothing to measure.
  const auto never = []() -> StoreCosts {
    ADD_FAILURE() << "measured";
    return {};
  };
  EXPECT_EQ(favoured_store(kWeights, 2'600'000'000, never), FavouredStore::kNested);
  EXPECT_EQ(favoured_store(20'000'000, 2'600'000'000, never), FavouredStore::kCopy);
}

// The combinations that programs ask for: of one recipe, and of several that are compared on one model.
TEST(FormatsFor, OneLosslessStoreServesEveryRecipe) {
  const WeightSource bf16{.all_bf16 = true};
  const WeightSource f16{};
  const WeightSource packed{.packed = true};
  const WeightSource lossy{.packed = true, .exact = false};
  const auto of = [](const std::vector<std::string>& recipes, const WeightSource& source) {
    std::vector<Recipe> loaded;
    for (const std::string& name : recipes) loaded.push_back(load_recipe(name));
    return formats_for(loaded, source);
  };
  EXPECT_EQ(of({}, bf16), Names{});
  EXPECT_EQ(of({"plain"}, bf16), Names{"full"});
  EXPECT_EQ(of({"auto"}, bf16), Names{"mxbf16"});
  EXPECT_EQ(of({"auto"}, f16), (Names{"full", "draft"}));
  EXPECT_EQ(of({"plain", "auto"}, bf16), (Names{"full", "mxfp4"}));
  EXPECT_EQ(of({"nested"}, f16), Names{"mxbf16"});  // which packing refuses, naming the tensor
  EXPECT_EQ(of({"plain", "nested"}, bf16), Names{"mxbf16"});
  EXPECT_EQ(of({"nested", "auto"}, bf16), Names{"mxbf16"});
  EXPECT_EQ(of({"ml-specqd", "nested"}, bf16), (Names{"mxfp4", "mxbf16"}));
  EXPECT_EQ(of({"auto"}, packed), Names{});
  EXPECT_EQ(of({"plain"}, packed), Names{"full"});
  EXPECT_EQ(of({"plain"}, lossy), Names{});
  EXPECT_EQ(of({"w4a16"}, lossy), Names{"int4"});
  EXPECT_EQ(of({"plain", "nested"}, packed), Names{"mxbf16"});
}

}  // namespace
}  // namespace verbatim
