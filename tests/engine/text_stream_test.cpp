#include "engine/text_stream.h"

#include <gtest/gtest.h>

#include "support/test_data.h"

namespace verbatim {
namespace {

std::shared_ptr<const Tokenizer> tokenizer() {
  static const auto loaded =
      load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, test::default_model() / "tokenizer.model"});
  return loaded;
}

/// Pushes a text token by token and returns what was released after each, and at the end.
std::vector<std::string> stream(const std::string& text, const std::vector<std::string>& stop,
                                bool* stopped = nullptr) {
  TextStream stream(*tokenizer(), false, stop);
  std::vector<std::string> pieces;
  bool found = false;
  for (const Token token : tokenizer()->encode(text, {.add_bos = false, .parse_special = false})) {
    found = stream.push(token);
    pieces.emplace_back(stream.release());
    if (found) break;
  }
  if (!found) found = stream.finish();
  pieces.emplace_back(stream.release());
  if (stopped != nullptr) *stopped = found;
  return pieces;
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  return all;
}

TEST(TextStream, ReleasesEverythingWithoutStopStrings) {
  bool stopped = true;
  EXPECT_EQ(joined(stream("def f(x):\n    return 'é😀'\n", {}, &stopped)), "def f(x):\n    return 'é😀'\n");
  EXPECT_FALSE(stopped);
}

TEST(TextStream, EndsBeforeTheFirstStopString) {
  bool stopped = false;
  EXPECT_EQ(joined(stream("one two three four", {"four", "three"}, &stopped)), "one two ");
  EXPECT_TRUE(stopped);
}

TEST(TextStream, NeverReleasesTheBeginningOfAStopString) {
  const std::string stop = "\nQuestion: what";
  std::string seen;
  for (const std::string& piece : stream("Answer 4\nQuestion: what is it", {stop})) {
    seen += piece;
    EXPECT_LE(seen.size(), std::string("Answer 4").size());
  }
  EXPECT_EQ(seen, "Answer 4");
}

TEST(TextStream, ReleasesAFalseBeginningOfAStopStringLater) {
  EXPECT_EQ(joined(stream("Answer 4\nQuestion? no", {"\nQuestion: what"})), "Answer 4\nQuestion? no");
  EXPECT_EQ(joined(stream("ends with \nQuest", {"\nQuestion"})), "ends with \nQuest");
}

}  // namespace
}  // namespace verbatim
