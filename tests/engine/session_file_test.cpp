#include <gtest/gtest.h>

#include "support/byte_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

class SavedSession : public testing::Test {
 protected:
  static GenerateOptions options() {
    GenerateOptions options;
    options.sampling = {.temperature = 0.8f, .seed = 3};
    options.max_tokens = 12;
    options.ignore_eos = true;
    return options;
  }
  static Recipe recipe_with(CacheOptions::Kind kind) {
    Recipe recipe = test::made_recipes(100)[0];
    recipe.cache.kind = kind;
    return recipe;
  }
  /// Talks twice, and saves the session after the first time.
  GenerateResult talk_and_save(const Recipe& recipe) {
    Session session(model_, 200, 1);
    session.generate(prompt_, options(), recipe);
    session.save(file_);
    tokens_ = session.tokens();
    evaluated_ = session.evaluated();
    return session.generate({70, 71}, options(), recipe);
  }
  std::string error_of(const std::string& bytes) {
    const auto file = folder_.write("changed.session", bytes);
    Session session(model_, 200, 1);
    try {
      session.restore(file);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
      EXPECT_TRUE(session.tokens().empty());
      return error.what();
    }
    return "";
  }

  test::TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "talk.session";
  Model model_ = test::byte_pair().target;
  std::vector<int32_t> prompt_ = std::vector<int32_t>(140, 65);
  std::vector<int32_t> tokens_;
  int64_t evaluated_ = 0;
};

TEST_F(SavedSession, GoesOnWithTheSameBytesAndWithoutEvaluatingAgain) {
  for (const auto kind : {CacheOptions::Kind::kBf16, CacheOptions::Kind::kF16, CacheOptions::Kind::kF32}) {
    const Recipe recipe = recipe_with(kind);
    const GenerateResult expected = talk_and_save(recipe);
    Session session(model_, 200, 1);
    session.generate({9, 9, 9}, options(), load_recipe("plain"));  // which restoring forgets
    session.restore(file_);
    EXPECT_EQ(session.tokens(), tokens_);
    EXPECT_EQ(session.evaluated(), evaluated_);
    EXPECT_GT(evaluated_, 140);
    const GenerateResult result = session.generate({70, 71}, options(), recipe);
    EXPECT_EQ(result.tokens, expected.tokens);
    EXPECT_EQ(result.stats.prompt_tokens, expected.stats.prompt_tokens);
    std::filesystem::remove(file_);
  }
}

TEST_F(SavedSession, OfAnotherCacheHasTheTokensAlone) {
  const Recipe recipe = recipe_with(CacheOptions::Kind::kHierarchical);
  const GenerateResult expected = talk_and_save(recipe);
  EXPECT_LT(std::filesystem::file_size(file_), 2000u);
  Session session(model_, 200, 1);
  session.restore(file_);
  EXPECT_EQ(session.tokens(), tokens_);
  EXPECT_EQ(session.evaluated(), 0);
  EXPECT_EQ(session.generate({70, 71}, options(), recipe).tokens.size(), expected.tokens.size());
}

TEST_F(SavedSession, ThatIsEmptyOrInTheWayIsHandled) {
  Session(model_, 200, 1).save(file_);
  Session session(model_, 200, 1);
  session.restore(file_);
  EXPECT_TRUE(session.tokens().empty());
  EXPECT_THROW(session.save(file_), Error);  // there is a file of that name
  EXPECT_THROW(session.restore(folder_.path() / "none.session"), Error);
}

TEST_F(SavedSession, ThatIsDamagedIsRefused) {
  talk_and_save(recipe_with(CacheOptions::Kind::kBf16));
  const std::string whole = test::read_file(file_);
  EXPECT_EQ(error_of(whole), "");
  for (size_t at = 0; at < whole.size(); at += at < 300 ? 7 : 1999) {
    std::string changed = whole;
    changed[at] ^= 0x10;
    EXPECT_NE(error_of(changed), "") << "byte " << at;
  }
  for (const size_t size : {whole.size() - 1, whole.size() / 2, size_t{216}, size_t{100}, size_t{1}}) {
    EXPECT_NE(error_of(whole.substr(0, size)), "") << size << " bytes";
  }
  EXPECT_NE(error_of(whole + "x"), "");
}

TEST_F(SavedSession, OfAnotherModelOrTooLongIsRefused) {
  talk_and_save(recipe_with(CacheOptions::Kind::kBf16));
  Session other(test::byte_pair().draft, 200, 1);
  EXPECT_THROW(other.restore(file_), Error);
  Session small(model_, 100, 1);
  EXPECT_THROW(small.restore(file_), Error);
}

}  // namespace
}  // namespace verbatim
