// Streams that are closed or full, pipes where files belong, limits of the process, and signals.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using test::lines_of;
using test::RunOptions;
using test::RunResult;
using ::testing::HasSubstr;

constexpr int kBadInputExit = 1;
constexpr int kUsageExit = 2;
constexpr int kMachineExit = 3;

/// Runs a script in a folder of its own, in which $V is the program and $M a small model.
class HostileMachine : public ::testing::Test {
 protected:
  RunResult run(const std::string& script, const std::string& input = "") const {
    RunOptions options;
    options.program = "/bin/bash";
    options.input = input;
    options.environment = {{"V", test::program()}, {"M", test::draft_model()}};
    if (!cache_.empty()) options.environment.emplace_back("VERBATIM_CACHE_DIR", cache_);
    return run_program({"-c", "cd '" + folder_.path().string() + "'; " + script}, options);
  }
  void expect_refused(const std::string& script, int exit_code, const std::string& part) const {
    SCOPED_TRACE(script);
    const RunResult result = run(script);
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
    EXPECT_THAT(result.err, HasSubstr(part));
  }
  /// A copy of the model by links, in which one file is a pipe that nobody writes to.
  void with_pipe(const std::string& file) const {
    const fs::path model = folder_.path() / "model";
    fs::remove_all(model);
    fs::create_directory(model);
    for (const auto& entry : fs::directory_iterator(test::draft_model())) {
      fs::create_symlink(entry.path(), model / entry.path().filename());
    }
    fs::remove(model / file);
    ASSERT_EQ(mkfifo((model / file).c_str(), 0600), 0);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename());
    return names;
  }

  test::TemporaryFolder folder_;
  std::string cache_;  ///< the folder of kept measurements, if the test has its own
};

TEST_F(HostileMachine, StandardErrorThatIsFullOrClosedChangesNothing) {
  const std::string generate = "$V generate $M -p 'def f' -n 4 --temperature 0";
  const std::string text = run(generate + " 2>/dev/null").out;
  EXPECT_NE(text, "");
  for (const char* stream : {" 2>/dev/full", " 2>&-"}) {
    SCOPED_TRACE(stream);
    const RunResult result = run(generate + stream);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.out, text);
    EXPECT_EQ(run(std::string("$V inspect absent") + stream).exit_code, kBadInputExit);
    EXPECT_EQ(run(std::string("$V generate --loud") + stream).exit_code, kUsageExit);
    EXPECT_EQ(run(std::string("$V chat $M --recipe plain -n 2") + stream, "hi\n").exit_code, 0);
  }
}

TEST_F(HostileMachine, StandardOutputThatIsFullOrClosedIsAnErrorOfTheMachine) {
  for (const char* command : {"recipes", "inspect $M", "generate $M -p x -n 2", "--help"}) {
    expect_refused(
        std::string("$V ") + command + " >/dev/full 2>errors; code=$?; tail -1 errors >&2; exit $code",
        kMachineExit, "cannot write to standard output");
    expect_refused(std::string("$V ") + command + " >&- 2>errors; code=$?; tail -1 errors >&2; exit $code",
                   kMachineExit, "cannot write to standard output");
  }
}

TEST_F(HostileMachine, APipeWithinAModelIsRefusedWithoutWaiting) {
  for (const char* file :
       {"config.json", "generation_config.json", "tokenizer_config.json", "model.safetensors"}) {
    with_pipe(file);
    expect_refused("$V generate model -p x -n 2", kBadInputExit, "is not a regular file");
  }
}

TEST_F(HostileMachine, KeptMeasurementsThatCannotBeReadAreMadeAnew) {
  cache_ = folder_.path() / "cache";
  const std::string generate = "$V generate $M -p x -n 2 --recipe auto";
  const std::string text = run(generate).out;
  for (const char* obstacle : {"ln -s /dev/zero", "mkfifo", "mkdir", "echo [ >"}) {
    SCOPED_TRACE(obstacle);
    const RunResult result = run("for f in cache/pass-costs-*; do rm -r $f; " + std::string(obstacle) +
                                 " $f; done; ls cache | wc -l; " + generate);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, ::testing::EndsWith(text));
  }
}

TEST_F(HostileMachine, ATextIsReadFromAPipeButNotFromADevice) {
  expect_refused("$V generate $M -n 2 -f /dev/zero", kBadInputExit, "is not a regular file");
  expect_refused("$V ngrams $M /dev/zero -o grams", kBadInputExit, "is not a regular file");
  expect_refused("$V eval perplexity $M /dev/zero", kBadInputExit, "is not a regular file");
  expect_refused("$V quantize $M --scheme awq --calibration /dev/zero -o q", kBadInputExit,
                 "is not a regular file");
  EXPECT_EQ(run("$V generate $M -n 2 -f <(echo hi)").exit_code, 0);
}

TEST_F(HostileMachine, AFileBeyondTheLimitOfTheProcessIsLikeAFullDisk) {
  for (const char* command : {"pack $M -o new.vbt", "quantize $M -o new", "inflate $M --width 2 -o new"}) {
    expect_refused("ulimit -f 30; $V " + std::string(command), kMachineExit, "cannot");
    EXPECT_THAT(files(), ::testing::IsEmpty()) << command;
  }
}

// Where the machine is busy, the model may be complete before the signal comes: then it is made once more.
TEST_F(HostileMachine, WhoeverEndsTheMakingOfAModelFindsNothingOfIt) {
  for (const char* signal : {"INT", "TERM", "HUP"}) {
    SCOPED_TRACE(signal);
    const RunResult result =
        run(std::string("set -m; while true; do rm -rf new\n"
                        "$V inflate $M --width 4 -o new 2>errors &\n"
                        "until ls | grep -q -e partial -e '^new$'; do :; done\n"
                        "kill -") +
            signal + " $! 2>/dev/null; wait $!; code=$?\n[[ -e new ]] || exit $code; done");
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_THAT(files(), ::testing::UnorderedElementsAre("errors"));
    fs::remove(folder_.path() / "errors");
  }
}

TEST_F(HostileMachine, AnInterruptThatIsIgnoredStaysSo) {
  const RunResult result =
      run("trap '' INT; $V pack $M -o new.vbt & until ls | grep -q vbt; do :; done; kill -INT $!; wait $!");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(files(), ::testing::UnorderedElementsAre("new.vbt"));
}

TEST_F(HostileMachine, AnInterruptWhileAModelLoadsEndsTheProgramWithALine) {
  // A text that never comes holds the program before it loads anything.
  const RunResult result =
      run("mkfifo text; set -m; $V generate $M -f text 2>errors & "
          "exec 3>text; kill -INT $!; wait $!; code=$?; cat errors; exit $code");
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.out, "verbatim: interrupted\n");
}

TEST_F(HostileMachine, AFolderThatMayNotBeWrittenIsAnErrorOfTheMachine) {
  // Root may write anywhere, unless that capability is taken from it.
  std::string start = "$V ";
  if (run("id -u").out == "0\n") start = "setpriv --bounding-set=-dac_override $V ";
  if (run(start + "--version").exit_code != 0) GTEST_SKIP() << "nothing can be forbidden to this user";
  fs::create_directory(folder_.path() / "locked");
  fs::permissions(folder_.path() / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  for (const char* command : {"pack $M -o", "quantize $M -o", "inflate $M --width 2 -o"}) {
    expect_refused(start + command + " locked/new", kMachineExit, "choose another place");
  }
}

TEST_F(HostileMachine, ALoopOfLinksIsNamedInOurWords) {
  fs::create_symlink("loop", folder_.path() / "loop");
  expect_refused("$V generate loop -p x", kBadInputExit, "verbatim: cannot open loop: Too many levels");
  expect_refused("$V generate $M -f loop", kBadInputExit, "verbatim: cannot open loop: Too many levels");
}

}  // namespace
}  // namespace verbatim
