#include "drafting/pass_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/cpu.h"
#include "kernels/dispatch.h"
#include "support/drafting.h"
#include "support/environment.h"
#include "verbatim/verbatim.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using Seconds = std::array<double, PassCosts::kRows.size()>;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

/// Passes over PassCosts::kRows rows: a tile holds 16.
constexpr Seconds kSeconds = {1.0,  1.125, 1.1875, 1.25, 1.3125, 1.375, 1.5, 1.5625,
                              1.75, 2.0,   4.0,    4.5,  9.0,    18.0,  36.0};

TEST(PassCosts, AreThoseMeasuredAndOnALineBetweenThem) {
  const PassCosts costs(kSeconds);
  for (size_t i = 0; i < kSeconds.size(); ++i)
    EXPECT_DOUBLE_EQ(costs.of(PassCosts::kRows[i]), kSeconds[i]) << PassCosts::kRows[i] << " rows";
  EXPECT_DOUBLE_EQ(costs.of(3), 1.1875);
  EXPECT_DOUBLE_EQ(costs.of(12), 1.75);
  EXPECT_DOUBLE_EQ(costs.of(48), 6.75);
  EXPECT_DOUBLE_EQ(costs.of(96), 13.5);
  EXPECT_DOUBLE_EQ(costs.of(384), 54.0);  // beyond the last, as between the last two
}

TEST(PassCosts, KnowWhatARowMoreCosts) {
  const PassCosts costs(kSeconds);
  EXPECT_DOUBLE_EQ(costs.row(1), 0.125);
  EXPECT_DOUBLE_EQ(costs.row(12), 0.0625);
  EXPECT_DOUBLE_EQ(costs.row(16), 2.0);  // the first of another tile
  for (int64_t rows = 1; rows < 100; ++rows) {
    EXPECT_GT(costs.row(rows), 0.0) << rows;
    EXPECT_NEAR(costs.of(rows) + costs.row(rows), costs.of(rows + 1), 1e-12) << rows;
  }
}

TEST(PassCosts, KnowWhatARowAddsNearSoManyRows) {
  const PassCosts costs(kSeconds);
  EXPECT_DOUBLE_EQ(costs.row_near(1), 0.09375);
  EXPECT_DOUBLE_EQ(costs.row_near(2), 0.25 / 3.0);
  EXPECT_DOUBLE_EQ(costs.row_near(4), 0.0625);
  EXPECT_NEAR(costs.row_near(16), (4.0 + 0.5 / 15.0 - 1.875) / 4.0, 1e-12);  // over two tiles
  EXPECT_DOUBLE_EQ(costs.row_near(0), costs.row_near(1));
}

TEST(PassCosts, NeverFallWithTheRowsHoweverNoisyTheMeasurements) {
  const PassCosts costs({3.0, 2.0, 3.0, 5.0, 4.5, 6.0, 4.0, 8.0, 7.0, 9.0, 4.5, 6.0, 5.5, 11.0, 22.0});
  for (int64_t rows = 1; rows < 100; ++rows) EXPECT_GE(costs.row(rows), 0.0) << rows;
  EXPECT_DOUBLE_EQ(costs.of(1), 2.0);
  EXPECT_DOUBLE_EQ(costs.of(16), 4.5);
  EXPECT_DOUBLE_EQ(costs.of(64), 5.5);
}

TEST(PassCosts, FollowAMachineThatBecomesSlowerAndQuickerAgain) {
  PassCosts costs(kSeconds);
  for (int i = 0; i < 100; ++i) costs.observe(4, 2.5);
  // All of them by the same factor, whatever the rows that it was seen at.
  for (int64_t rows = 1; rows < 80; ++rows)
    EXPECT_NEAR(costs.of(rows), 2.0 * PassCosts(kSeconds).of(rows), 1e-3);
  EXPECT_NEAR(costs.row(16), 4.0, 1e-3);
  EXPECT_EQ(costs.measured(), kSeconds);
  for (int i = 0; i < 100; ++i) costs.observe(17, 3.0);
  EXPECT_NEAR(costs.of(17), 3.0, 1e-3);
  // The two passes on either side of the change have lowered the cost of 17 rows by a fortieth, the most that
  // one pair does.
  EXPECT_NEAR(costs.of(1), 0.75 / 0.975, 1e-3);
}

TEST(PassCosts, OfABatchAreThoseOfPassesOverTheRowsOfAllSequences) {
  PassCosts costs(kSeconds);
  costs.set_batch(8);
  for (const int64_t rows : {1, 2, 3, 8, 40}) {
    EXPECT_DOUBLE_EQ(costs.of(rows), PassCosts(kSeconds).of(8 * rows)) << rows;
    EXPECT_DOUBLE_EQ(costs.table(8 * rows), costs.of(rows)) << rows;
    EXPECT_DOUBLE_EQ(costs.of_pass(rows), PassCosts(kSeconds).of(rows)) << rows;
  }
  EXPECT_DOUBLE_EQ(costs.row(1), 0.5);
  for (int i = 0; i < 100; ++i) costs.observe_pass(16, 4.0);
  EXPECT_NEAR(costs.of(2), 4.0, 1e-3);
  EXPECT_NEAR(costs.of_pass(16), 4.0, 1e-3);
  PassCosts other(kSeconds);
  other.follow(costs);
  EXPECT_NEAR(other.of(1), 2.0, 1e-3);
  costs.set_batch(1);
  EXPECT_NEAR(costs.of(16), 4.0, 1e-3);
}

TEST(PassCosts, OfDifferentRowsTakeTheRatioThatPassesHaveOneAfterTheOther) {
  // Four rows were disturbed when they were measured: they take 1.0, which is 0.8 of the table's time. Passes
  // over four rows and over eight follow each other, on a machine twice as slow, then as slow as it was.
  PassCosts costs(kSeconds);
  for (const double slower : {2.0, 1.0}) {
    for (int i = 0; i < 60; ++i) {
      costs.observe(4, slower * 1.0);
      costs.observe(8, slower * 1.5);
    }
    EXPECT_NEAR(costs.of(8) / costs.of(4), 1.5, 0.02) << slower;
    EXPECT_NEAR(costs.of(8), slower * 1.5, 0.05) << slower;
  }
  // The others have the table's ratios to each other.
  EXPECT_DOUBLE_EQ(costs.of(32) / costs.of(16), kSeconds[11] / kSeconds[9]);
  for (int64_t rows = 1; rows < 100; ++rows) EXPECT_GE(costs.row(rows), 0.0) << rows;
  // The table stays as it was measured.
  EXPECT_EQ(costs.measured(), kSeconds);
  EXPECT_DOUBLE_EQ(costs.table(4), kSeconds[3]);
}

TEST(PassCosts, OfOneNumberOfRowsAloneSayNothingOfItsRatioToOthers) {
  PassCosts costs(kSeconds);
  for (int i = 0; i < 100; ++i) costs.observe(4, i < 50 ? 3.0 : 0.9);
  for (int64_t rows = 1; rows < 100; ++rows)
    EXPECT_DOUBLE_EQ(costs.of(rows) / costs.of(1), PassCosts(kSeconds).of(rows)) << rows;
}

TEST(PassCosts, OneInterruptedPassChangesRatiosLittle) {
  PassCosts costs(kSeconds);
  for (int i = 0; i < 20; ++i) costs.observe(i % 2 == 0 ? 4 : 8, i % 2 == 0 ? 1.25 : 1.5);
  costs.observe(8, 150.0);
  EXPECT_NEAR(costs.of(8) / costs.of(4), 1.2, 0.07);
  costs.observe(4, 1.25);
  EXPECT_NEAR(costs.of(8) / costs.of(4), 1.2, 0.13);
}

TEST(PassCosts, MoveTowardsWhatPassesTakeAndNotBeyond) {
  PassCosts costs(kSeconds);
  double before = costs.of(1);
  for (int i = 0; i < 50; ++i) {
    costs.observe(1, 1.5);
    EXPECT_GT(costs.of(1), before);
    EXPECT_LE(costs.of(1), 1.5);
    before = costs.of(1);
  }
}

TEST(PassCosts, LearnMostFromTheFirstPasses) {
  PassCosts costs(kSeconds);
  costs.observe(1, 2.0);
  EXPECT_GE(costs.of(1), 1.4);  // the measurements may be from long ago
  for (int i = 0; i < 100; ++i) costs.observe(1, 1.0);
  const double before = costs.of(1);
  costs.observe(1, 2.0);
  EXPECT_LE(costs.of(1), before + 0.11);
}

TEST(PassCosts, OneInterruptedPassCountsLittle) {
  PassCosts costs(kSeconds);
  for (int i = 0; i < 20; ++i) costs.observe(1, 1.0);
  costs.observe(1, 1e6);
  EXPECT_LE(costs.of(1), 1.31);
  PassCosts other(kSeconds);
  for (int i = 0; i < 1000; ++i) other.observe(1, 0.0);
  EXPECT_GE(other.of(1), 0.24);
}

TEST(PassCosts, UnknownOnesStayUnknown) {
  PassCosts costs;
  costs.observe(1, 1.0);
  costs.observe_pass(1, 1.0);
  EXPECT_EQ(costs.of(1), 0.0);
  EXPECT_EQ(costs.of(64), 0.0);
}

TEST(CacheFolder, IsWhereTheUserWantsIt) {
  test::Environment environment;
  environment.set("VERBATIM_CACHE_DIR", "/own");
  environment.set("XDG_CACHE_HOME", "/shared");
  environment.set("HOME", "/home/me");
  EXPECT_EQ(cache_folder(), fs::path("/own"));
  environment.set("VERBATIM_CACHE_DIR", "");
  EXPECT_EQ(cache_folder(), std::nullopt);
  environment.set("VERBATIM_CACHE_DIR", std::nullopt);
  EXPECT_EQ(cache_folder(), fs::path("/shared/verbatim"));
  for (const std::optional<std::string>& unusable : {std::optional<std::string>(), {""}, {"relative"}}) {
    environment.set("XDG_CACHE_HOME", unusable);
    EXPECT_EQ(cache_folder(), fs::path("/home/me/.cache/verbatim"));
  }
  environment.set("HOME", std::nullopt);
  EXPECT_EQ(cache_folder(), std::nullopt);
}

class KeptPassCosts : public testing::Test {
 protected:
  /// What lies in the folder now.
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    if (!fs::exists(folder_)) return found;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) found.push_back(entry.path());
    return found;
  }
  /// The file that a key's costs are kept in, which has them from now on.
  fs::path file_of(const std::string& key) const {
    const std::vector<fs::path> before = files();
    EXPECT_TRUE(keep_pass_costs(folder_, key, PassCosts(kSeconds)));
    for (const fs::path& path : files()) {
      if (std::find(before.begin(), before.end(), path) == before.end()) return path;
    }
    ADD_FAILURE() << "no file for " << key;
    return {};
  }
  static void write(const fs::path& path, const std::string& contents) {
    std::ofstream(path, std::ios::binary) << contents;
  }
  std::optional<PassCosts> find(const std::string& key) const { return find_pass_costs(folder_, key); }

  test::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path() / "cache" / "verbatim";  // not there yet
};

TEST_F(KeptPassCosts, AreFoundAsTheyWere) {
  EXPECT_FALSE(find("a"));
  // No short decimal fractions, and what was observed since is another day's matter.
  Seconds seconds = kSeconds;
  for (double& value : seconds) value = value / 3.0 * 1e-3;
  PassCosts costs(seconds);
  costs.observe(1, 1.0);
  EXPECT_TRUE(keep_pass_costs(folder_, "a", costs));
  const std::optional<PassCosts> found = find("a");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->measured(), seconds);
  EXPECT_EQ(found->of(4), seconds[3]);
  EXPECT_EQ(files().size(), 1U);  // nothing unfinished beside it
}

TEST_F(KeptPassCosts, AreReplacedByLaterOnes) {
  Seconds later = kSeconds;
  for (double& value : later) value *= 2.0;
  EXPECT_TRUE(keep_pass_costs(folder_, "a", PassCosts(kSeconds)));
  EXPECT_TRUE(keep_pass_costs(folder_, "a", PassCosts(later)));
  ASSERT_TRUE(find("a"));
  EXPECT_EQ(find("a")->measured(), later);
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(KeptPassCosts, AreNoneOfAnotherKey) {
  const fs::path one = file_of("one");
  EXPECT_FALSE(find("two"));
  EXPECT_FALSE(find("one "));
  const fs::path two = file_of("two");
  // Nor where the names of two keys' files are the same.
  fs::copy_file(one, two, fs::copy_options::overwrite_existing);
  EXPECT_FALSE(find("two"));
  EXPECT_TRUE(find("one"));
}

TEST_F(KeptPassCosts, MalformedFilesAreIgnored) {
  const fs::path path = file_of("key");
  const std::string whole = test::read_file(path);
  const auto good = nlohmann::json::parse(whole);
  const auto with = [&](const std::string& name, const nlohmann::json& value) {
    nlohmann::json changed = good;
    changed[name] = value;
    return changed.dump();
  };
  const auto with_seconds = [&](const nlohmann::json& value) {
    nlohmann::json changed = good;
    changed["seconds"][3] = value;
    return changed.dump();
  };
  const auto without = [&](const std::string& name) {
    nlohmann::json changed = good;
    changed.erase(name);
    return changed.dump();
  };
  std::vector<std::string> malformed = {
      "",
      "\n",
      "null",
      "[]",
      "{}",
      "3",
      "\"seconds\"",
      std::string(1000, '\0'),
      "\xff\xfe{}",
      std::string(5000, '['),
      whole + "}",
      with("version", 0),
      with("version", 2),
      with("version", 3),
      with("version", 4),
      with("version", "1"),
      without("version"),
      with("key", "another"),
      with("key", 7),
      without("key"),
      without("seconds"),
      with("seconds", 1.0),
      with("seconds", nlohmann::json::array()),
      with("seconds", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}),
      with("seconds", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}),
      with("seconds", {{"a", 1}}),
      with_seconds(nullptr),
      with_seconds("1.5"),
      with_seconds(true),
      with_seconds({1.5}),
      with_seconds(0.0),
      with_seconds(-1.5),
      with_seconds(1e300),
  };
  // A file that was cut off anywhere: its last characters are "}\n".
  for (size_t length = 1; length + 2 < whole.size(); length += 7)
    malformed.push_back(whole.substr(0, length));
  malformed.push_back(whole.substr(0, whole.size() - 2));
  for (const std::string& contents : malformed) {
    write(path, contents);
    EXPECT_NO_THROW(EXPECT_FALSE(find("key")) << contents.substr(0, 400)) << contents.substr(0, 400);
  }
  // What was changed without a mistake is read.
  write(path, with_seconds(1.25));
  ASSERT_TRUE(find("key"));
  EXPECT_EQ(find("key")->of(4), 1.25);
}

TEST_F(KeptPassCosts, AFolderThatCannotBeWrittenToIsNoError) {
  const fs::path file = temporary_.write("file", "not a folder");
  for (const fs::path& folder : {file, file / "below", fs::path("/proc/self/no-such-folder")}) {
    EXPECT_NO_THROW(EXPECT_FALSE(keep_pass_costs(folder, "key", PassCosts(kSeconds)))) << folder;
    EXPECT_NO_THROW(EXPECT_FALSE(find_pass_costs(folder, "key"))) << folder;
  }
  EXPECT_EQ(test::read_file(file), "not a folder");
}

/// Root may write anywhere, so as long as this lives root is nobody.
class WithoutRoot {
 public:
  WithoutRoot() {
    if (root_) {
      EXPECT_EQ(seteuid(65534), 0);
    }
  }
  ~WithoutRoot() {
    if (root_) {
      EXPECT_EQ(seteuid(0), 0);
    }
  }
  WithoutRoot(const WithoutRoot&) = delete;
  WithoutRoot& operator=(const WithoutRoot&) = delete;

 private:
  bool root_ = geteuid() == 0;
};

TEST_F(KeptPassCosts, AFolderWithoutPermissionIsNoError) {
  fs::create_directories(folder_);
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  {
    const WithoutRoot nobody;
    EXPECT_FALSE(keep_pass_costs(folder_, "key", PassCosts(kSeconds)));
    EXPECT_FALSE(find("key"));
  }
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(KeptPassCosts, NothingUnfinishedStaysWhereTheyCannotBeKept) {
  const fs::path path = file_of("key");
  fs::remove(path);
  fs::create_directories(path / "in the way");
  EXPECT_NO_THROW(EXPECT_FALSE(keep_pass_costs(folder_, "key", PassCosts(kSeconds))));
  EXPECT_THAT(files(), UnorderedElementsAreArray({path}));
}

TEST_F(KeptPassCosts, WhatCannotBeReadIsIgnored) {
  const fs::path path = file_of("key");
  fs::remove(path);
  fs::create_directories(path);
  EXPECT_NO_THROW(EXPECT_FALSE(find("key")));
}

/// Costs of a tiny model, measured indeed.
class MeasuredPassCosts : public KeptPassCosts {
 protected:
  MeasuredPassCosts() { environment_.set("VERBATIM_CACHE_DIR", folder_.string()); }

  static test::TinyModelOptions options() {
    test::TinyModelOptions options = test::small_vocabulary(40);
    options.layers = 1;
    return options;
  }

  /// The costs, and in measured_ whether they were measured now.
  PassCosts costs(const PassKind& kind = Reading::kFull) {
    measured_ = 0.0;
    return pass_costs(evaluator_, kind, [&](double done) {
      EXPECT_GT(done, measured_);
      measured_ = done;
    });
  }

  test::Environment environment_;
  ThreadTeam team_{1};
  ThreadTeam pair_{2};
  Decoder decoder_ = test::tiny_decoder(options());
  Evaluator evaluator_{decoder_, team_};
  double measured_ = 0.0;  // the fraction of the measurements that the last costs() made
};

TEST_F(MeasuredPassCosts, AreMeasuredOnceAndKept) {
  const PassCosts measured = costs();
  EXPECT_DOUBLE_EQ(measured_, 1.0);
  EXPECT_GT(measured.of(1), 0.0);
  for (int64_t rows = 1; rows < 64; ++rows) EXPECT_GE(measured.row(rows), 0.0) << rows;
  EXPECT_EQ(files().size(), 1U);
  const PassCosts found = costs();
  EXPECT_EQ(measured_, 0.0);
  EXPECT_EQ(found.measured(), measured.measured());
}

// A mixture of experts reads more weights for more rows, but not if all tokens are the same.
TEST_F(MeasuredPassCosts, AreThoseOfTokensThatGoThroughDifferentExperts) {
  test::TinyModelOptions options = MeasuredPassCosts::options();
  options.model_type = "mixtral";
  options.experts = 16;
  options.experts_used = 1;
  const Decoder decoder = test::tiny_decoder(options);
  Evaluator evaluator(decoder, team_);
  const LayerWeights& layer = decoder.weights().layers.front();
  std::map<int64_t, std::set<const LinearWeight*>> read;  // experts, by the rows of the pass
  int64_t rows = 0;
  const std::function<void(const LinearWeight&, Matrix<const float>)> watch = [&](const LinearWeight& weight,
                                                                                  Matrix<const float> x) {
    if (&weight == &layer.qkv) rows = x.rows;
    for (const ExpertWeights& expert : layer.experts) {
      if (&expert.gate_up == &weight) read[rows].insert(&weight);
    }
  };
  PassKind kind(Reading::kFull);
  kind.inputs = &watch;
  measure_pass_costs(evaluator, kind);
  EXPECT_EQ(read[1].size(), 1u);
  EXPECT_GE(read[8].size(), 3u);
  EXPECT_GE(read[256].size(), 12u);
}

TEST_F(MeasuredPassCosts, AreMeasuredAnewForAnotherReading) {
  costs(Reading::kFull);
  costs(Reading::kMxfp4W4A8);
  EXPECT_EQ(measured_, 1.0);
  EXPECT_EQ(files().size(), 2U);
  costs(Reading::kFull);
  EXPECT_EQ(measured_, 0.0);
}

TEST_F(MeasuredPassCosts, AreMeasuredAnewWhereTheFileIsCutOff) {
  costs();
  ASSERT_EQ(files().size(), 1U);
  const fs::path path = files().front();
  const std::string whole = test::read_file(path);
  write(path, whole.substr(0, whole.size() / 2));
  const PassCosts again = costs();
  EXPECT_EQ(measured_, 1.0);
  // The file is whole again.
  EXPECT_EQ(costs().measured(), again.measured());
  EXPECT_EQ(measured_, 0.0);
}

TEST_F(MeasuredPassCosts, NeedNoFolder) {
  for (const std::string& folder :
       {std::string(), temporary_.write("file", "").string(), std::string("/proc/self/no-such-folder")}) {
    environment_.set("VERBATIM_CACHE_DIR", folder);
    for (int round = 0; round < 2; ++round) {
      EXPECT_GT(costs().of(1), 0.0) << folder;
      EXPECT_EQ(measured_, 1.0) << folder;
    }
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(MeasuredPassCosts, KeyNamesWhatTheyDependOn) {
  const std::string key = pass_costs_key(evaluator_, Reading::kFull);
  EXPECT_EQ(key, pass_costs_key(evaluator_, Reading::kFull));
  EXPECT_THAT(key, HasSubstr(std::string(version())));
  EXPECT_THAT(key, HasSubstr(cpu_features().model_name));
  EXPECT_THAT(key, HasSubstr(kernels().name));
  EXPECT_THAT(key, HasSubstr("1 threads"));
}

TEST_F(MeasuredPassCosts, KeyDiffersWhereTheyDiffer) {
  std::vector<std::string> keys = {pass_costs_key(evaluator_, Reading::kFull),
                                   pass_costs_key(evaluator_, Reading::kMxfp4W4A8)};
  Evaluator threads(decoder_, pair_);
  keys.push_back(pass_costs_key(threads, Reading::kFull));
  const LinearWeight head = first_columns(decoder_.weights().head, 16);
  PassKind reduced = Reading::kFull;
  reduced.head = &head;
  keys.push_back(pass_costs_key(evaluator_, reduced));
  const auto add_model = [&](const test::TinyModelOptions& changed, const PassKind& kind = Reading::kFull) {
    const Decoder decoder = test::tiny_decoder(changed);
    Evaluator evaluator(decoder, team_);
    keys.push_back(pass_costs_key(evaluator, kind));
  };
  for (const auto& change : std::initializer_list<void (*)(test::TinyModelOptions&)>{
           [](auto& model) { model.hidden_size = 96; }, [](auto& model) { model.intermediate_size = 64; },
           [](auto& model) { model.heads = 4; }, [](auto& model) { model.heads = 4, model.kv_heads = 2; },
           [](auto& model) { model.head_dim = 64; }, [](auto& model) { model.vocab_size = 48; },
           [](auto& model) { model.layers = 3; },
           [](auto& model) { model.model_type = "gemma2", model.sliding_window = 64; },
           [](auto& model) { model.model_type = "mixtral"; },
           [](auto& model) { model.model_type = "mixtral", model.experts = 6; },
           [](auto& model) { model.model_type = "mixtral", model.experts_used = 3; }}) {
    test::TinyModelOptions changed = options();
    change(changed);
    add_model(changed);
  }
  test::TinyModelOptions deeper = options();
  deeper.layers = 3;
  PassKind early = Reading::kFull;
  early.layers = 2;
  add_model(deeper, early);
  test::TinyModelOptions mixture = options();
  mixture.model_type = "mixtral";
  PassKind one_expert = Reading::kFull;
  one_expert.experts = 1;
  add_model(mixture, one_expert);
  EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), keys.size());
}

}  // namespace
}  // namespace verbatim
