#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "engine/model_access.h"
#include "kv/dense.h"
#include "support/speculative_text.h"
#include "support/synthetic_model.h"

// Beginnings of sequences that are kept on disk: however damaged they are, the answers are those without
// them.

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using namespace test;  // NOLINT: the support of this very test

class DiskCache : public testing::Test {
 protected:
  DiskCache() {
    std::string text;
    while (model().encode(text).size() < 300) {
      text += "Once upon a time, a girl named Lily and a dog went to the park. They saw a big red ball. ";
    }
    for (const char* const end : {" The dog", " Lily said", " One day", ""}) {
      Request request{.prompt = model().encode(text + end), .options = {}, .recipe = {}};
      request.options.max_tokens = 30;
      request.options.ignore_eos = true;
      request.options.sampling = various_sampling()[requests_.size()];
      request.options.sampling.seed = requests_.size();
      requests_.push_back(std::move(request));
    }
    expected_ = answers_alone(load_recipe("plain"));
  }
  static const Model& model() { return small_pair().target; }

  std::vector<std::vector<int32_t>> answers_alone(const Recipe& recipe) const {
    std::vector<std::vector<int32_t>> answers;
    for (const Request& request : requests_) {
      Session session(model(), 600, 1);
      answers.push_back(session.generate(request.prompt, request.options, recipe).tokens);
    }
    return answers;
  }
  EngineOptions options(int64_t bytes = int64_t{1} << 30) const {
    return {.max_batch = 3, .capacity = 600, .cache_dir = folder_, .cache_dir_bytes = bytes, .threads = 1};
  }
  /// The answers of an engine that is made and gone again.
  std::vector<std::vector<int32_t>> answers(const EngineOptions& options, const Recipe& recipe) {
    Engine engine(model(), options);
    engine.set_draft_model(small_pair().draft);
    std::vector<TokenStream> streams;
    for (Request request : requests_) {
      request.recipe = recipe;
      streams.push_back(engine.submit(std::move(request)));
    }
    std::vector<std::vector<int32_t>> all;
    for (TokenStream& stream : streams) all.push_back(stream.wait().tokens);
    stats_ = engine.stats();
    return all;
  }
  /// Expects a new engine to give the answers that it gives without a folder. Returns how many tokens of
  /// prompts it has read from the disk.
  int64_t expect_answers(const EngineOptions& options, const Recipe& recipe = load_recipe("plain")) {
    EXPECT_EQ(answers(options, recipe), expected_) << recipe.name;
    return stats_.prompt_tokens_from_disk;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) all.push_back(entry.path());
    std::ranges::sort(all);
    return all;
  }
  int64_t bytes_of_all() const {
    int64_t bytes = 0;
    for (const fs::path& file : files()) bytes += static_cast<int64_t>(fs::file_size(file));
    return bytes;
  }
  static void overwrite(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }

  TemporaryFolder parent_;
  fs::path folder_ = parent_.path() / "kept";
  std::vector<Request> requests_;
  std::vector<std::vector<int32_t>> expected_;  // the answers of plain decoding without a folder
  EngineStats stats_;
};

TEST_F(DiskCache, AnswersTheSameBeforeAndAfterARestart) {
  for (const char* const name : {"plain", "auto", "ml-specqd", "draft-model", "ngram"}) {
    fs::remove_all(folder_);
    const Recipe recipe = load_recipe(name);
    EXPECT_EQ(expect_answers(options(), recipe), 0) << name;
    EXPECT_GE(files().size(), 2u) << name;
    // The first of them reads, and whatever joins it reads or shares.
    EXPECT_GE(expect_answers(options(), recipe), 256) << name;
    EXPECT_EQ(stats_.disk_cache_errors, 0) << name;
    EXPECT_GE(stats_.prompt_tokens_remembered, stats_.prompt_tokens_from_disk) << name;
  }
  // One recipe finds what another has left, because their verifying readings are the same.
  EXPECT_GE(expect_answers(options()), 256);
}

TEST_F(DiskCache, GoesOnFromAnAnswerThatEndedBeforeTheRestart) {
  Request request = requests_[0];
  request.recipe = load_recipe("plain");
  request.options.max_tokens = 150;
  GenerateResult first;
  {
    Engine engine(model(), options());
    first = engine.generate(request);
  }
  request.prompt.insert(request.prompt.end(), first.tokens.begin(), first.tokens.end());
  request.prompt.push_back(5);
  request.options.max_tokens = 20;
  Session session(model(), 600, 1);
  const std::vector<int32_t> alone =
      session.generate(request.prompt, request.options, load_recipe("plain")).tokens;
  Engine engine(model(), options());
  EXPECT_EQ(engine.generate(request).tokens, alone);
  EXPECT_EQ(engine.stats().prompt_tokens_from_disk, (std::ssize(request.prompt) - 1) / 128 * 128);
  EXPECT_GE(engine.stats().prompt_tokens_from_disk, 384);
}

TEST_F(DiskCache, BelievesNoDamagedFile) {
  expect_answers(options());
  const std::string whole = read_file(files()[0]);
  const std::vector<std::function<void(const fs::path&)>> damages = {
      [](const fs::path& file) { overwrite(file, ""); },
      [&](const fs::path& file) { overwrite(file, whole.substr(0, whole.size() - 1)); },
      [&](const fs::path& file) { overwrite(file, whole.substr(0, 100)); },
      [&](const fs::path& file) { overwrite(file, read_file(file) + "x"); },
      [&](const fs::path& file) { overwrite(file, std::string(whole.size(), '\0')); },
      [](const fs::path& file) {
        fs::remove(file);
        fs::create_directory(file);
      },
      [](const fs::path& file) {
        fs::remove(file);
        ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
      },
      [&](const fs::path& file) {
        const fs::path elsewhere = parent_.path() / file.filename();
        fs::rename(file, elsewhere);
        fs::create_symlink(elsewhere, file);
      },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    for (const fs::path& file : files()) damages[i](file);
    EXPECT_EQ(expect_answers(options()), 0) << i;
    EXPECT_EQ(stats_.disk_cache_errors, 0) << i;
    // A chunk that was found damaged was written again. The second one is looked at only where the first is
    // whole.
    EXPECT_GE(expect_answers(options()), 128) << i;
    EXPECT_GE(expect_answers(options()), 256) << i;
  }
}

TEST_F(DiskCache, BelievesNoFileWithAFlippedBit) {
  expect_answers(options());
  const auto size = fs::file_size(files()[0]);
  for (size_t place = 0; place < size; place += place < 750 ? 125 : size / 3) {
    for (const fs::path& file : files()) {
      std::string bytes = read_file(file);
      bytes[place] = static_cast<char>(bytes[place] ^ 16);
      overwrite(file, bytes);
    }
    ASSERT_EQ(expect_answers(options()), 0) << place;
  }
}

TEST_F(DiskCache, BelievesNoFileUnderTheNameOfAnother) {
  expect_answers(options());
  const std::vector<fs::path> all = files();
  ASSERT_GE(all.size(), 2u);
  std::vector<std::string> contents;
  for (const fs::path& file : all) contents.push_back(read_file(file));
  for (size_t i = 0; i < all.size(); ++i) overwrite(all[i], contents[(i + 1) % all.size()]);
  EXPECT_EQ(expect_answers(options()), 0);
}

TEST_F(DiskCache, KeepsReadingsApart) {
  Recipe other = load_recipe("plain");
  other.reading = "int4-w4a16";
  expect_answers(options());
  expected_ = answers_alone(other);
  EXPECT_EQ(expect_answers(options(), other), 0);
  EXPECT_GE(expect_answers(options(), other), 256);
}

TEST_F(DiskCache, KeepsModelsApart) {
  const std::vector<int32_t> prompt(200, 70);
  for (const uint32_t seed : {1, 2, 1, 2}) {
    const fs::path file = parent_.path() / "model.gguf";
    write_tiny_gguf(file, {.dtype = DType::kF32,
                           .hidden_size = 64,
                           .heads = 2,
                           .kv_heads = 1,
                           .vocab_size = 260,
                           .byte_vocabulary = true,
                           .seed = seed});
    const Model tiny = load_model(file, {"full"});
    Request request{.prompt = prompt, .options = {}, .recipe = load_recipe("plain")};
    request.options.max_tokens = 20;
    request.options.ignore_eos = true;
    Session session(tiny, 250, 1);
    const std::vector<int32_t> alone = session.generate(prompt, request.options, request.recipe).tokens;
    const bool again = fs::exists(folder_) && files().size() == 2;
    Engine engine(tiny, {.max_batch = 1, .cache_dir = folder_, .threads = 1});
    EXPECT_EQ(engine.generate(request).tokens, alone);
    EXPECT_EQ(engine.stats().prompt_tokens_from_disk, again ? 128 : 0);
    fs::remove(file);
  }
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(DiskCache, TakesNoMoreThanItsBytes) {
  expect_answers(options());
  const auto one = static_cast<int64_t>(fs::file_size(files()[0]));
  fs::remove_all(folder_);
  for (int32_t i = 0; i < 5; ++i) {
    requests_[0].prompt[0] = 10 + i;
    expected_ = answers_alone(load_recipe("plain"));
    expect_answers(options(4 * one + 1));
    EXPECT_LE(bytes_of_all(), 4 * one + 1);
    EXPECT_GE(files().size(), 2u);
  }
  expect_answers(options(0));
  EXPECT_EQ(files().size(), 0u);
  EXPECT_EQ(stats_.disk_cache_errors, 0);
}

TEST_F(DiskCache, IsSharedByEnginesAtTheSameTime) {
  expect_answers(options());
  const auto one = static_cast<int64_t>(fs::file_size(files()[0]));
  // Room for less than all have, so that each deletes what another reads.
  std::vector<std::thread> users;
  for (int user = 0; user < 3; ++user) {
    users.emplace_back([&, user] {
      for (int round = 0; round < 4; ++round) {
        Engine engine(model(), options((3 + user) * one));
        for (size_t i = 0; i < requests_.size(); ++i) {
          Request request = requests_[i];
          request.recipe = load_recipe("plain");
          EXPECT_EQ(engine.generate(request).tokens, expected_[i]);
          request.prompt[0] = 7 + user;
          request.options.max_tokens = 1;
          engine.generate(request);
        }
        EXPECT_EQ(engine.stats().disk_cache_errors, 0);
      }
    });
  }
  for (std::thread& user : users) user.join();
}

TEST_F(DiskCache, NeverFailsARequest) {
  {
    Engine engine(model(), options());
    fs::remove_all(folder_);
    Request request = requests_[0];
    request.recipe = load_recipe("plain");
    EXPECT_EQ(engine.generate(request).tokens, expected_[0]);
    EXPECT_EQ(engine.generate(request).tokens, expected_[0]);
    for (int i = 0; i < 1000 && engine.stats().disk_cache_errors == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_GT(engine.stats().disk_cache_errors, 0);
  }
  fs::create_directory(folder_);
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  expect_answers(options());
  if (geteuid() != 0) {  // who may do everything has no folder to which nobody may write
    EXPECT_EQ(files().size(), 0u);
  }
}

TEST_F(DiskCache, ThatCannotBeThereIsRefusedWithTheEngine) {
  std::ofstream(parent_.path() / "file") << "text";
  EngineOptions wrong = options();
  wrong.cache_dir = parent_.path() / "file";
  EXPECT_THROW(Engine(model(), wrong), Error);
  wrong = options(-1);
  EXPECT_THROW(Engine(model(), wrong), Error);
  wrong = options();
  wrong.prompt_cache = false;
  expect_answers(wrong);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(DiskCache, OfOtherCachesKeepsNothing) {
  Recipe recipe = load_recipe("plain");
  recipe.cache.kind = CacheOptions::Kind::kInt8;
  expected_ = answers_alone(recipe);
  expect_answers(options(), recipe);
  EXPECT_EQ(expect_answers(options(), recipe), 0);
  EXPECT_EQ(files().size(), 0u);
}

// A process is killed while it writes, at many different moments.
TEST_F(DiskCache, OfAProcessThatWasKilledIsAsGoodAsItsWholeFiles) {
  TOO_LONG_FOR_SANITIZERS();
  for (int round = 0; round < 6; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int32_t i = 0;; ++i) {
        Engine engine(model(), options());
        for (Request request : requests_) {
          request.recipe = load_recipe("plain");
          request.options.max_tokens = 1;
          engine.generate(request);
          request.prompt[0] = 3 + i % 1000;
          engine.generate(request);
        }
      }
    }
    const auto wanted = static_cast<size_t>(1 + 3 * round);
    for (int i = 0; i < 10000 && (!fs::exists(folder_) || files().size() < wanted); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(500 + 300 * round));
    }
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    std::ofstream(folder_ / ".chunk-partial-1-1") << "what a killed writer leaves";
    expect_answers(options());
    EXPECT_EQ(stats_.disk_cache_errors, 0);
    for (const fs::path& file : files()) EXPECT_EQ(file.extension(), ".chunk") << file;
  }
  EXPECT_GE(expect_answers(options()), 256);
}

}  // namespace
}  // namespace verbatim
