#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include "text/gguf_pre_tokenizers.h"
#include "tokenizer_support.h"

namespace verbatim {
namespace {

using Kind = PreTokenizerStep::Kind;
using MarkFirst = PreTokenizerStep::MarkFirst;
using Strings = std::vector<std::string>;

Strings words_of(const PreTokenizer& steps, const std::string& text, bool first = true) {
  const PreTokens words = pre_tokenize(steps, text, first);
  Strings result;
  for (const TextRange& range : words.ranges)
    result.push_back(words.text.substr(range.begin, range.end - range.begin));
  return result;
}

Strings split(const std::string& pattern, SplitBehavior behavior, const std::string& text,
              bool invert = false) {
  PreTokenizer steps = {split_step(pattern, behavior, "test")};
  steps[0].invert = invert;
  return words_of(steps, text);
}

TEST(PreTokenizer, EveryBehaviorTreatsMatchesInItsOwnWay) {
  const std::string text = "the-final--countdown";
  EXPECT_EQ(split("-", SplitBehavior::kIsolated, text),
            (Strings{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split("-", SplitBehavior::kRemoved, text), (Strings{"the", "final", "countdown"}));
  EXPECT_EQ(split("-", SplitBehavior::kMergedWithPrevious, text),
            (Strings{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split("-", SplitBehavior::kMergedWithNext, text), (Strings{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split("-", SplitBehavior::kContiguous, text), (Strings{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split("-", SplitBehavior::kRemoved, text, true), (Strings{"-", "-", "-"}));
}

TEST(PreTokenizer, EmptyMatchesCutNothing) {
  EXPECT_EQ(split("x*", SplitBehavior::kIsolated, "aéxxb"), (Strings{"aé", "xx", "b"}));
  EXPECT_EQ(split("", SplitBehavior::kIsolated, "abc"), (Strings{"abc"}));
  EXPECT_EQ(split("a", SplitBehavior::kIsolated, ""), (Strings{}));
}

TEST(PreTokenizer, ClassesAreThoseOfUnicode) {
  EXPECT_EQ(split(R"(\p{L}+)", SplitBehavior::kRemoved, "naïve Ж日本 x", true),
            (Strings{"naïve", "Ж日本", "x"}));
  EXPECT_EQ(split(R"(\s+)", SplitBehavior::kRemoved, "a\u3000b\u00a0c"), (Strings{"a", "b", "c"}));
  EXPECT_EQ(split(R"((?i:É))", SplitBehavior::kIsolated, "aéb"), (Strings{"a", "é", "b"}));
}

TEST(PreTokenizer, LaterStepsCutWhatEarlierOnesLeft) {
  const PreTokenizer steps = {split_step(R"(\s)", SplitBehavior::kRemoved, "test"),
                              split_step(R"(\d)", SplitBehavior::kIsolated, "test")};
  EXPECT_EQ(words_of(steps, "ab1 2c"), (Strings{"ab", "1", "2", "c"}));
}

TEST(PreTokenizer, MarksReplaceSpaces) {
  PreTokenizerStep step;
  step.kind = Kind::kMark;
  step.mark = "_";
  const auto marked = [&](MarkFirst mark_first, const char* text, bool first) {
    step.mark_first = mark_first;
    return words_of({step}, text, first);
  };
  EXPECT_EQ(marked(MarkFirst::kNever, "a b", true), (Strings{"a_b"}));
  EXPECT_EQ(marked(MarkFirst::kAlways, "a b", false), (Strings{"_a_b"}));
  EXPECT_EQ(marked(MarkFirst::kAlways, " a", false), (Strings{"_a"})) << "a mark is not doubled";
  EXPECT_EQ(marked(MarkFirst::kTextStart, "a", true), (Strings{"_a"}));
  EXPECT_EQ(marked(MarkFirst::kTextStart, "a", false), (Strings{"a"}));
}

TEST(PreTokenizer, PrefixSpaceIsNotDoubled) {
  PreTokenizerStep step;
  step.kind = Kind::kPrefixSpace;
  EXPECT_EQ(words_of({step}, "a"), (Strings{" a"}));
  EXPECT_EQ(words_of({step}, " a"), (Strings{" a"}));
}

TEST(Regex, MalformedAndHugePatternsAreErrors) {
  for (const std::string& pattern :
       {std::string("("), std::string("[z-a]"), std::string(100'000, 'a'),
        std::string("a{1,1000}{1,1000}{1,1000}"), std::string("\\C"), std::string(1000, '(')}) {
    const auto message = test::bad_input_message([&] { Regex(pattern, "tokenizer.json"); });
    EXPECT_EQ(message.rfind("tokenizer.json: ", 0), 0u) << message;
  }
}

TEST(Regex, LongRunsOfSpaceAreNoProblem) {
  const Regex regex(R"(\s*[\r\n]+|\s+(?!\S)|\s+)", "test");
  const std::string text(300'000, ' ');
  Regex::Matches matches(regex, text);
  EXPECT_EQ(matches.next()->end, text.size());
  EXPECT_FALSE(matches.next());
}

TEST(GgufPreTokenizer, CutsBetweenCasesAsTheNamedModelDoes) {
  const auto words = [](const char* name) {
    return words_of(gguf_pre_tokenizer(name, "test").steps, "camelCase HTTPServer's");
  };
  for (const char* name : {"gpt-4o", "llama4"}) {
    EXPECT_EQ(words(name), (Strings{"camel", "Case", " HTTPServer's"})) << name;
  }
  EXPECT_EQ(words("llama-bpe"), (Strings{"camelCase", " HTTPServer", "'s"}));
}

TEST(GgufPreTokenizer, CutsNumbersAsTheNamedModelDoes) {
  const auto words = [](const char* name) {
    return words_of(gguf_pre_tokenizer(name, "test").steps, "It'S 12345");
  };
  for (const char* name : {"llama-bpe", "glm4", "chatglm-bpe"}) {
    EXPECT_EQ(words(name), (Strings{"It", "'S", " ", "123", "45"})) << name;
  }
  EXPECT_EQ(words("qwen2"), (Strings{"It", "'S", " ", "1", "2", "3", "4", "5"}));
  EXPECT_EQ(words("gpt-2"), (Strings{"It", "'", "S", " 12345"}));
  EXPECT_EQ(words("gpt-4o"), (Strings{"It'S", " ", "123", "45"}));
  const std::string message = test::bad_input_message([] { gguf_pre_tokenizer("glm-4", "some.gguf"); });
  EXPECT_NE(message.find("some.gguf: tokenizer.ggml.pre is 'glm-4'"), std::string::npos) << message;
}

}  // namespace
}  // namespace verbatim
