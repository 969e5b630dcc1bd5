#include "agent/builtin/builtin_tools.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "agent/builtin/arithmetic.h"
#include "agent/builtin/beneath.h"
#include "agent/call_tool.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim::agent {
namespace {

namespace fs = std::filesystem;
using test::call_tool;
using ::testing::HasSubstr;

std::string failure_of(const std::string& expression) {
  try {
    return "value " + std::to_string(arithmetic(expression));
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Arithmetic, ComputesExpressions) {
  EXPECT_EQ(arithmetic("1 + 2 * 3 - 4 / 8"), 6.5);
  EXPECT_EQ(arithmetic("-2^2 + 2 ** 3 ** 2"), 508);
  EXPECT_EQ(arithmetic("(1.5e3 + .5) % 7"), 2.5);
  EXPECT_EQ(arithmetic("max(1, min([5, 3]), round(2.345, 2)) * sum(1, 2, 3)"), 18);
  EXPECT_EQ(arithmetic("sqrt(16) + abs(-3) + floor(2.7) + mean(2, 4)"), 12);
  EXPECT_NEAR(arithmetic("ln(e) + cos(pi)"), 0, 1e-12);
}

TEST(Arithmetic, RefusesWhatIsNoExpression) {
  EXPECT_EQ(failure_of("1 / (2 - 2)"), "character 12 of the expression: it divides by zero");
  EXPECT_EQ(failure_of("2 +"), "character 4 of the expression: it ends where a number should stand");
  EXPECT_EQ(failure_of("system(1)"), "character 10 of the expression: there is no function `system`");
  EXPECT_EQ(failure_of("Mount Everest"), "character 1 of the expression: `Mount` is no number");
  EXPECT_EQ(failure_of("9^9^9^9"), "the value is no finite number");
  EXPECT_THAT(failure_of(std::string(5000, '(')), HasSubstr("too deep"));
  EXPECT_THAT(failure_of(std::string(5000, '-')), HasSubstr("too deep"));
  EXPECT_THAT(failure_of(std::string(20'000, '1')), HasSubstr("more than 10000 bytes"));
  EXPECT_THAT(failure_of("min()"), HasSubstr("wants a number"));
  EXPECT_THAT(failure_of("1,2"), HasSubstr("`,2` is not understood"));
}

TEST(BuiltInTools, MathAnswersNumbers) {
  RealLoop loop;
  const ToolEntry math = math_tool(loop);
  EXPECT_EQ(call_tool(loop, *math.tool, {{"expression", "6 * 7"}}).value, 42);
  EXPECT_EQ(call_tool(loop, *math.tool, {{"expression", "1 / 8"}}).value, 0.125);
  EXPECT_THAT(call_tool(loop, *math.tool, {{"expression", "x"}}).error, HasSubstr("`x` is no number"));
}

TEST(BuiltInTools, SearchFindsPagesByTitleAndByWords) {
  const test::TemporaryFolder folder;
  folder.write("corpus.jsonl",
               "{\"title\": \"Ed Wood (film)\", \"text\": \"A film of 1994 about Ed Wood.\"}\n\n"
               "{\"title\": \"Ed Wood\", \"text\": \"An American film maker.\\n\\nMore about him.\"}\n"
               "{\"title\": \"Laleli Mosque\", \"text\": \"A mosque in Istanbul.\"}\n");
  RealLoop loop;
  const ToolEntry search = search_tool(loop, folder.path() / "corpus.jsonl");
  const auto ask = [&](const std::string& query, int count = 1) {
    return as_text(call_tool(loop, *search.tool, {{"query", query}, {"count", count}}).value);
  };
  EXPECT_EQ(ask("Ed Wood"), "Ed Wood: An American film maker.");
  EXPECT_EQ(ask("mosques in Istanbul"), "Laleli Mosque: A mosque in Istanbul.");
  EXPECT_THAT(ask("Ed Wood", 2), HasSubstr("\n\nEd Wood (film): "));
  EXPECT_EQ(ask("qwertz"), "Nothing was found for \"qwertz\".");
  EXPECT_EQ(ask("\"NEAR( OR * title:laleli ) --"), "Laleli Mosque: A mosque in Istanbul.");
  EXPECT_EQ(call_tool(loop, *search.tool, {{"query", "?!"}}).error, "the query has no words");
}

TEST(BuiltInTools, SearchRefusesWhatIsNoCorpus) {
  const test::TemporaryFolder folder;
  RealLoop loop;
  const auto failure = [&](const std::string& name) -> std::string {
    try {
      search_tool(loop, folder.path() / name);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  folder.write("bad.jsonl", "{\"title\": \"a\", \"text\": \"b\"}\n{\"title\": 7}\n");
  folder.write("bad.db", std::string("SQLite format 3\0", 16) + std::string(2000, 'x'));
  EXPECT_THAT(failure("missing"), HasSubstr("cannot read the corpus"));
  EXPECT_THAT(failure("bad.jsonl"), HasSubstr("line 2 is no JSON object with `title` and `text`"));
  EXPECT_THAT(failure("bad.db"), HasSubstr("it is no corpus"));
}

/// A folder with files, links of all kinds, and a secret beside it.
class ReadFile : public ::testing::Test {
 protected:
  ReadFile() {
    root_ = folder_.path() / "root";
    fs::create_directories(root_ / "deep" / "er");
    folder_.write("secret", "SECRET");
    folder_.write("root/a.txt", "hello");
    folder_.write("root/deep/er/b.txt", "deep");
    fs::create_symlink("../secret", root_ / "up");
    fs::create_symlink(folder_.path() / "secret", root_ / "absolute");
    fs::create_symlink("..", root_ / "parent");
    fs::create_symlink("deep/er/b.txt", root_ / "within");
    fs::create_symlink("/proc/self/root", root_ / "magic");
    mkfifo((root_ / "pipe").c_str(), 0600);
  }

  std::string read(const std::string& path) {
    const ToolResult result = call_tool(loop_, *read_file_tool(loop_, root_).tool, {{"path", path}});
    return result.done ? as_text(result.value) : result.error;
  }

  test::TemporaryFolder folder_;
  fs::path root_;
  RealLoop loop_;
};

TEST_F(ReadFile, ReadsFilesBelowItsFolder) {
  EXPECT_EQ(read("a.txt"), "hello");
  EXPECT_EQ(read("deep/er/../er/b.txt"), "deep");
  EXPECT_EQ(read("within"), "deep");
  folder_.write("root/bytes", "a\xFF");
  EXPECT_EQ(read("bytes"), "a\xEF\xBF\xBD");
}

TEST_F(ReadFile, NeverLeavesItsFolder) {
  for (const std::string path :
       {"../secret", "up", "absolute", "parent/secret", "deep/../../secret", "magic/etc/passwd",
        "/etc/passwd", "", "deep/er/../../../secret", "./../secret"}) {
    SCOPED_TRACE(path);
    EXPECT_THAT(read(path), ::testing::AnyOf(HasSubstr("leaves the folder"), HasSubstr("within the folder"),
                                             HasSubstr("Too many levels")));
  }
  EXPECT_THAT(read("pipe"), HasSubstr("it is no file"));
  EXPECT_THAT(read("deep"), HasSubstr("it is no file"));
  EXPECT_THAT(read("missing"), HasSubstr("No such file"));
  folder_.write("root/large", std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(read("large"), HasSubstr("more than 1048576 bytes"));
}

TEST_F(ReadFile, GoesThroughNoLinkWhereTheKernelCannotCheck) {
  const FileDescriptor root(open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_GE(open_by_steps(root.number(), "deep/./er//b.txt").number(), 0);
  for (const std::string path :
       {"up", "absolute", "parent/secret", "within", "../secret", "magic/etc/passwd", "a.txt/x"}) {
    EXPECT_THROW(open_by_steps(root.number(), path), Error) << path;
  }
}

TEST_F(ReadFile, NeverLeavesItsFolderWhileOthersChangeIt) {
  // Another thread swaps a folder for a link that leads outside, as fast as it can.
  fs::create_directories(root_ / "swap");
  folder_.write("root/swap/secret", "inside");
  fs::create_symlink("..", root_ / "link");
  std::atomic<bool> over = false;
  std::thread swapper([&] {
    const std::string here = (root_ / "swap").string();
    const std::string there = (root_ / "link").string();
    while (!over) renameat2(AT_FDCWD, here.c_str(), AT_FDCWD, there.c_str(), RENAME_EXCHANGE);
  });
  const FileDescriptor root(open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    for (const auto open_one : {open_beneath, open_by_steps}) {
      try {
        const FileDescriptor file = open_one(root.number(), "swap/secret");
        char text[16] = {};
        ASSERT_GT(::read(file.number(), text, sizeof(text) - 1), 0);
        ASSERT_STREQ(text, "inside");
        ++read;
      } catch (const Error&) {
      }
    }
  }
  over = true;
  swapper.join();
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace verbatim::agent
