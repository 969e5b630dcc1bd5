#include "verbatim/prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/bad_input.h"

namespace verbatim {
namespace {

using test::expect_bad_input;
using ::testing::ElementsAre;

TEST(Prompts, AreTakenFromEveryKindOfLine) {
  const std::string text =
      "{\"prompt\": \"as it stands\"}\n"
      "  \n"
      "{\"question\": \"1 + 1?\"}\r\n"
      "{\"turns\": [\"the first\", \"the second\"]}";
  EXPECT_THAT(parse_prompts(text, "p.jsonl"),
              ElementsAre("as it stands", "Question: 1 + 1?\nAnswer:", "the first"));
}

TEST(Prompts, AreAtMostAsManyAsAskedFor) {
  const std::string text = "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\nno JSON\n";
  EXPECT_THAT(parse_prompts(text, "p.jsonl", 2), ElementsAre("a", "b"));
}

TEST(Prompts, AreRefusedWithTheLineThatIsWrong) {
  expect_bad_input([] { parse_prompts("{\"prompt\": \"a\"}\n\n{\"a\": 1}\n", "p.jsonl"); }, {"p.jsonl:3"});
  expect_bad_input([] { parse_prompts("{\"prompt\": \"\"}\n", "p.jsonl"); }, {"p.jsonl:1", "empty"});
  expect_bad_input([] { parse_prompts("{\"turns\": []}\n", "p.jsonl"); }, {"p.jsonl:1", "turns"});
  expect_bad_input([] { parse_prompts(" \n", "p.jsonl"); }, {"p.jsonl", "no prompts"});
}

}  // namespace
}  // namespace verbatim
