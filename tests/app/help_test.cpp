#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run_program.h"
#include "verbatim/verbatim.h"

namespace verbatim {
namespace {

using test::lines_of;
using test::run_program;
using test::RunOptions;
using test::RunResult;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr const char* kCommands[] = {"generate", "chat",  "inspect", "recipes", "demo",   "inflate",
                                     "convert",  "bench", "eval",    "pack",    "ngrams", "tokenize",
#ifdef VERBATIM_WITH_AGENT
                                     "agent",
#endif
#ifdef VERBATIM_SERVER
                                     "serve"
#endif
};

void expect_usage_error(const std::vector<std::string>& arguments, const std::string& part) {
  SCOPED_TRACE(part);
  const RunResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  ASSERT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_TRUE(result.err.starts_with("verbatim: ")) << result.err;
  EXPECT_THAT(result.err, HasSubstr(part));
}

TEST(Help, ListsTheCommandsAndGivesExamples) {
  const RunResult result = run_program({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("Examples:\n  verbatim demo"));
  for (const char* command : kCommands) EXPECT_THAT(result.out, HasSubstr(std::string("\n  ") + command));
}

TEST(Help, OfEveryCommandHasAnExample) {
  for (const char* command : kCommands) {
    SCOPED_TRACE(command);
    const RunResult result = run_program({command, "--help"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, HasSubstr("Example"));
    EXPECT_THAT(result.out, HasSubstr(std::string("\n  verbatim ") + command));
    EXPECT_THAT(result.out, Not(HasSubstr("\n\n\n")));
    for (const std::string& line : lines_of(result.out)) EXPECT_LE(line.size(), 120u) << line;
  }
}

TEST(Help, VersionIsTheLibrarysWithCommitCompilerAndKernels) {
  const RunResult result = run_program({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  const std::vector<std::string> lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 4u) << result.out;
  EXPECT_EQ(lines[0], std::string("verbatim ") + version());
  EXPECT_THAT(lines[1], MatchesRegex("commit   ([0-9a-f]{12}(-dirty)?|unknown)"));
  EXPECT_THAT(lines[2], MatchesRegex("compiler (GCC|Clang) [0-9].*"));
  EXPECT_THAT(lines[3], HasSubstr("kernels  " + describe_machine().kernels + " "));
}

TEST(Help, VersionIsSaidWhereNoKernelsCanBeUsed) {
  RunOptions options;
  options.environment = {{"VERBATIM_ISA", "none"}};
  const RunResult result = run_program({"--version"}, options);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("VERBATIM_ISA"));
}

TEST(Usage, WhatIsWrongIsSaidInOneLine) {
  expect_usage_error({}, "a command is missing");
  expect_usage_error({"sing"}, "no command or option sing");
  expect_usage_error({"--loud"}, "no command or option --loud");
  expect_usage_error({"generate"}, "MODEL is required (`verbatim generate --help`");
  expect_usage_error({"generate", "m", "-p", "x", "--loud"}, "--loud");
  expect_usage_error({"generate", "m", "-p", "x", "--lo\nud"}, "--lo ud");
  expect_usage_error({"generate", "m", "-p", "x", "-f", "y"}, "--file");
  expect_usage_error({"generate", "m", "-p", "x", "-n", "many"}, "many");
  expect_usage_error({"generate", "m", "-p", "x", "-n", "-1"}, "-1");
  expect_usage_error({"generate", "m", "-p", "x", "--stop", ""}, "--stop");
  expect_usage_error({"generate", "m", "-p", "x", "--draft-length", "65"}, "65");
  expect_usage_error({"inspect", "m", "--yaml"}, "--yaml");
  expect_usage_error({"recipes", "more"}, "more");
  expect_usage_error({"chat", "m", "--format", "alpaca"}, "chatml, llama-3");
}

TEST(Recipes, AreListedWithWhatTheyNeed) {
  const RunResult result = run_program({"recipes"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("plain "));
  EXPECT_THAT(result.out, HasSubstr("ml-specqd "));
  for (const char* part :
       {"needs:   the weights in mxfp4 too\n", "needs:   the weights in mxbf16 alone\n",
        "needs:   nothing but the model\n", "a draft model (--draft-model)\n",
        "drafts:  the first 4 layers in full\n", "mxbf16-draft, itself drafted for by n-grams\n",
        "promise: the bytes of plain decoding\n", "promise: none"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
  for (const std::string& name : recipe_names()) EXPECT_THAT("\n" + result.out, HasSubstr("\n" + name + " "));
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace
}  // namespace verbatim
