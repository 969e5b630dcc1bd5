#include "fisher.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/bad_input.h"
#include "checkpoint/sensitivity.h"
#include "in_order.h"
#include "model/sensitivity_origin.h"
#include "model/weight_sketch.h"
#include "samples.h"
#include "support.h"

namespace verbatim {
namespace {

using test::expect_bad_input;
using test::TemporaryFolder;
using test::TinyModelOptions;
using train::FisherOptions;

class Fisher : public testing::Test {
 protected:
  Fisher() : checkpoint_(model("model", {})) {}

  Checkpoint model(const std::string& name, const TinyModelOptions& options) const {
    write_tiny_llama(folder_.path() / name, options);
    return open_checkpoint(folder_.path() / name);
  }
  /// The bytes of the file that the options give.
  std::string file_with(const FisherOptions& options) const {
    const std::filesystem::path file = folder_.path() / "some.safetensors";
    EXPECT_TRUE(write_sensitivities(checkpoint_, samples_, file, options));
    std::string bytes = test::read_file(file);
    std::filesystem::remove(file);
    return bytes;
  }

  TemporaryFolder folder_;
  Checkpoint checkpoint_;
  std::vector<std::vector<int32_t>> samples_ = test::tiny_samples(5, 16);
  FisherOptions options_ = test::tiny_options(samples_);
};

TEST_F(Fisher, ThreadsChangeNoByte) {
  options_.output_matrix = true;
  const std::string one = file_with(options_);
  for (const int32_t threads : {2, 5}) {
    options_.threads = threads;
    EXPECT_TRUE(file_with(options_) == one) << threads << " threads give another file";
  }
}

TEST_F(Fisher, AnInterruptedRunGoesOnToTheSameFile) {
  const std::string whole = file_with(options_);
  const std::filesystem::path file = folder_.path() / "later.safetensors";
  for (const int calls : {0, 3, 8, 12, 17, 22}) {
    int left = calls;
    options_.cancelled = [&] { return left-- == 0; };
    options_.resume = false;
    EXPECT_FALSE(write_sensitivities(checkpoint_, samples_, file, options_)) << calls;
    EXPECT_FALSE(std::filesystem::exists(file));
    EXPECT_TRUE(std::filesystem::exists(file.string() + ".work"));
    options_.cancelled = {};
    options_.resume = true;
    EXPECT_TRUE(write_sensitivities(checkpoint_, samples_, file, options_));
    EXPECT_TRUE(test::read_file(file) == whole) << "interrupted after " << calls << " samples";
    EXPECT_FALSE(std::filesystem::exists(file.string() + ".work"));
    std::filesystem::remove(file);
  }
}

TEST_F(Fisher, OtherWorkIsNotTakenUp) {
  const std::filesystem::path file = folder_.path() / "some.safetensors";
  int left = 12;
  options_.cancelled = [&] { return left-- == 0; };
  ASSERT_FALSE(write_sensitivities(checkpoint_, samples_, file, options_));
  options_.cancelled = {};
  options_.resume = true;
  options_.text_digest = "another";
  expect_bad_input([&] { write_sensitivities(checkpoint_, samples_, file, options_); },
                   {"some.safetensors.work", "other work", "remove the folder"});
  options_.resume = false;
  expect_bad_input([&] { write_sensitivities(checkpoint_, samples_, file, options_); },
                   {"some.safetensors.work", "interrupted", "--resume"});
  std::filesystem::remove_all(file.string() + ".work");
  EXPECT_TRUE(write_sensitivities(checkpoint_, samples_, file, options_));
}

TEST_F(Fisher, WhatNoRunHasLeftIsNotTouched) {
  const std::filesystem::path file = folder_.path() / "some.safetensors";
  const std::filesystem::path work = file.string() + ".work";
  std::filesystem::create_directory(work);
  folder_.write("some.safetensors.work/precious", "x");
  for (const bool resume : {false, true}) {
    options_.resume = resume;
    expect_bad_input([&] { write_sensitivities(checkpoint_, samples_, file, options_); },
                     {"some.safetensors.work", "precious"});
  }
  EXPECT_EQ(test::read_file(work / "precious"), "x");
  std::filesystem::remove_all(work);
  folder_.write("some.safetensors.work", "y");
  expect_bad_input([&] { write_sensitivities(checkpoint_, samples_, file, options_); }, {"in the way"});
  EXPECT_EQ(test::read_file(work), "y");
}

TEST_F(Fisher, ADamagedNoteOfProgressIsRefused) {
  const std::filesystem::path file = folder_.path() / "some.safetensors";
  const std::filesystem::path note = file.string() + ".work/progress.json";
  int left = 12;
  options_.cancelled = [&] { return left-- == 0; };
  ASSERT_FALSE(write_sensitivities(checkpoint_, samples_, file, options_));
  options_.cancelled = {};
  options_.resume = true;
  const nlohmann::json good = nlohmann::json::parse(test::read_file(note));
  for (const auto& [key, value] : std::vector<std::pair<std::string, nlohmann::json>>{
           {"forward", -1}, {"forward", 3}, {"backward", -1}, {"backward", 100000}, {"loss", "x"}}) {
    nlohmann::json bad = good;
    bad["forward"] = 2;
    bad["backward"] = 1;
    bad[key] = value;
    std::ofstream(note) << bad;
    expect_bad_input([&] { write_sensitivities(checkpoint_, samples_, file, options_); },
                     {"progress.json", "damaged"});
  }
  std::ofstream(note) << good;
  EXPECT_TRUE(write_sensitivities(checkpoint_, samples_, file, options_));
}

TEST_F(Fisher, TheFileSaysWhatItIsMadeOf) {
  options_.text_digest = "0123";
  const std::filesystem::path file = folder_.path() / "some.safetensors";
  ASSERT_TRUE(write_sensitivities(checkpoint_, samples_, file, options_));
  const SensitivityFile fisher = open_sensitivities(file);
  EXPECT_EQ(fisher.metadata.at(kTextDigest), "0123");
  EXPECT_EQ(fisher.metadata.at(kSampleCount), "5");
  EXPECT_EQ(fisher.metadata.at(kSampleLength), "16");
  EXPECT_EQ(fisher.metadata.at(kMeasure), "gradient");
  EXPECT_GT(std::atof(fisher.metadata.at(kMeanLoss).c_str()), 4.0);
  EXPECT_FALSE(fisher.has("lm_head.weight"));
  EXPECT_FALSE(fisher.has("model.embed_tokens.weight"));
  EXPECT_EQ(fisher.tensors.at("model.layers.1.mlp.down_proj.weight").shape, (std::vector<int64_t>{128, 256}));
  require_same_model(checkpoint_, fisher);
  expect_bad_input([&] { require_same_model(model("other", {.seed = 2}), fisher); },
                   {"some.safetensors", "another model"});
  SensitivityFile hostile = fisher;
  nlohmann::json opposite = nlohmann::json::array();
  for (const float weight : weight_sketch(checkpoint_)) opposite.push_back(-weight);
  opposite[0] = 1e39;  // no float
  hostile.metadata[kWeightSketch] = opposite.dump();
  expect_bad_input([&] { require_same_model(checkpoint_, hostile); }, {"another model"});
}

TEST_F(Fisher, AGgufFileHasTheSensitivitiesOfTheSameModelInSafetensors) {
  const TinyModelOptions options = {.dtype = DType::kF32};
  checkpoint_ = model("plain", options);
  const std::string plain = file_with(options_);
  test::write_tiny_gguf(folder_.path() / "model.gguf", options);
  checkpoint_ = open_checkpoint(folder_.path() / "model.gguf");
  EXPECT_TRUE(file_with(options_) == plain);
}

TEST_F(Fisher, ThreadsWithoutSamplesTakeNoMemory) {
  options_.threads = 5;
  const int64_t five = fisher_memory(checkpoint_.config, options_);
  options_.threads = 500;
  EXPECT_EQ(fisher_memory(checkpoint_.config, options_), five);
  options_.threads = 4;
  EXPECT_LT(fisher_memory(checkpoint_.config, options_), five);
}

TEST_F(Fisher, SaysHowMuchMemoryIsNeededBeforeItStarts) {
  options_.samples.length = int64_t{1} << 20;
  try {
    require_room(checkpoint_.config, folder_.path() / "some.safetensors", options_);
    FAIL() << "no machine has so much memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMachine);
    EXPECT_NE(std::string(error.what()).find("GiB of memory"), std::string::npos) << error.what();
  }
}

TEST_F(Fisher, NamesTheTensorThatHoldsNoNumbers) {
  const Checkpoint broken = model("nan", {.nan_weight = true});
  expect_bad_input(
      [&] { write_sensitivities(broken, samples_, folder_.path() / "nan.safetensors", options_); },
      {"layers.0.mlp.down_proj", "NaN"});
}

TEST_F(Fisher, RefusesAFileThatIsThere) {
  const std::filesystem::path file = folder_.write("there.safetensors", "x");
  expect_bad_input([&] { write_sensitivities(checkpoint_, samples_, file, options_); }, {"exists already"});
  const std::filesystem::path link = folder_.path() / "link.safetensors";
  std::filesystem::create_symlink("nowhere", link);
  expect_bad_input([&] { write_sensitivities(checkpoint_, samples_, link, options_); }, {"exists already"});
}

TEST_F(Fisher, ExpertsThatNoRowChoseAreNamed) {
  const Checkpoint mixture = model("mixture", {.model_type = "mixtral", .experts = 16, .experts_used = 1});
  const std::vector<std::vector<int32_t>> samples = test::tiny_samples(1, 3);
  const auto report = write_sensitivities(mixture, samples, folder_.path() / "mixture.safetensors",
                                          test::tiny_options(samples));
  ASSERT_TRUE(report);
  EXPECT_GE(report->none.size(), 2u * 14 * 3);  // two rows reach two of 16 experts
  EXPECT_LT(report->zeros, report->weights);
}

TEST(Samples, AreAtPlacesThatTheSeedChooses) {
  std::vector<int32_t> text(1000);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<int32_t>(i);
  const auto chosen = train::choose_samples(text, 7, {.samples = 20, .length = 11, .seed = 3}, "text");
  ASSERT_EQ(chosen.size(), 20u);
  for (const std::vector<int32_t>& sample : chosen) {
    ASSERT_EQ(sample.size(), 11u);
    EXPECT_EQ(sample[0], 7);
    EXPECT_EQ(sample[10] - sample[1], 9);
  }
  EXPECT_NE(chosen[0], chosen[1]);
  EXPECT_EQ(chosen, train::choose_samples(text, 7, {.samples = 20, .length = 11, .seed = 3}, "text"));
  EXPECT_NE(chosen, train::choose_samples(text, 7, {.samples = 20, .length = 11, .seed = 4}, "text"));
}

TEST(Samples, AreRefusedFromATextThatIsTooShort) {
  const std::vector<int32_t> text(10);
  EXPECT_EQ(train::choose_samples(text, std::nullopt, {.samples = 1, .length = 10}, "text").size(), 1u);
  expect_bad_input([&] { train::choose_samples(text, std::nullopt, {.samples = 1, .length = 11}, "text"); },
                   {"text has 10 tokens", "11"});
  EXPECT_THROW(train::choose_samples(text, 1, {.samples = 1, .length = 1}, "text"), Error);
}

TEST(InOrder, AddsInOrderOnAnyThread) {
  std::vector<int64_t> order;
  train::InOrder work(100);
  EXPECT_TRUE(work.run(7,
                       [&](int64_t number) {
                         if (work.wait_for_turn(number)) order.push_back(number);
                       },
                       {}));
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(InOrder, EndsWithWhatAThreadThrows) {
  train::InOrder work(100);
  EXPECT_THROW(work.run(3,
                        [&](int64_t number) {
                          if (number == 20) throw std::runtime_error("no");
                        },
                        {}),
               std::runtime_error);
  train::InOrder stopped(100);
  std::atomic<int> asked = 0;
  EXPECT_FALSE(stopped.run(
      3, [](int64_t) {}, [&] { return ++asked > 10; }));
}

}  // namespace
}  // namespace verbatim
