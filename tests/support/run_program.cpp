#include "support/run_program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace verbatim::test {

namespace {

using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanLimitMemory = false;
#else
constexpr bool kCanLimitMemory = true;
#endif

/// A pipe of which the child gets one end.
struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe is to be had");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(int which) {
    if (ends[which] >= 0) close(ends[which]);
    ends[which] = -1;
  }
  int ends[2];
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool changed = std::any_of(changes.begin(), changes.end(), [&](const auto& change) {
      return text.starts_with(change.first + "=");
    });
    if (!changed) result.push_back(text);
  }
  for (const auto& [name, value] : changes) result.push_back(name + "=" + value);
  // What the program measures stays out of the user's folders, but is shared by the tests of a build.
  const bool has_cache = std::any_of(result.begin(), result.end(), [](const std::string& entry) {
    return entry.starts_with("VERBATIM_CACHE_DIR=");
  });
  if (!has_cache) {
    result.push_back("VERBATIM_CACHE_DIR=" + (program().parent_path() / "test-cache").string());
  }
  return result;
}

/// Takes what the pipe holds. Returns false at its end.
bool drain(Pipe& pipe, std::string& into) {
  char buffer[1 << 14];
  const ssize_t count = read(pipe.ends[0], buffer, sizeof(buffer));
  if (count > 0) into.append(buffer, static_cast<size_t>(count));
  if (count > 0 || (count < 0 && errno == EINTR)) return true;
  pipe.close_end(0);
  return false;
}

void feed(Pipe& pipe, const std::string& input, size_t& fed) {
  const ssize_t count = write(pipe.ends[1], input.data() + fed, input.size() - fed);
  if (count > 0) fed += static_cast<size_t>(count);
  // A program that stops reading is no failure.
  if (fed == input.size() || (count < 0 && errno == EPIPE)) pipe.close_end(1);
}

/// A text without the lines that say that something takes long: whether they come depends on the machine's
/// speed.
std::string without_progress(const std::string& text) {
  std::string rest;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string line = text.substr(begin, end - begin);
    if (!line.ends_with("; this may take a while\n")) rest += line;
    begin = end;
  }
  return rest;
}

}  // namespace

RunResult run_program(const std::vector<std::string>& arguments, const RunOptions& options) {
  std::vector<std::string> argument_texts = arguments;
  argument_texts.insert(argument_texts.begin(), options.program.string());
  std::vector<std::string> environment_texts = environment_with(options.environment);
  const std::vector<char*> argument_pointers = pointers(argument_texts);
  const std::vector<char*> environment_pointers = pointers(environment_texts);
  Pipe in;
  Pipe out;
  Pipe err;
  signal(SIGPIPE, SIG_IGN);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) {
    // Only calls that are safe between fork and exec.
    dup2(in.ends[0], STDIN_FILENO);
    dup2(out.ends[1], STDOUT_FILENO);
    dup2(err.ends[1], STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    if (options.limit_memory && kCanLimitMemory) {
      const rlimit limit{rlim_t{4} << 30, rlim_t{4} << 30};
      setrlimit(RLIMIT_AS, &limit);
    }
    execve(argument_pointers[0], argument_pointers.data(), environment_pointers.data());
    _exit(127);
  }
  in.close_end(0);
  out.close_end(1);
  err.close_end(1);
  fcntl(in.ends[1], F_SETFL, O_NONBLOCK);
  if (options.input.empty()) in.close_end(1);

  RunResult result;
  size_t fed = 0;
  bool interrupted = false;
  Clock::time_point interrupt_time;
  const int seconds = options.seconds * (kSanitized ? 10 : 1);
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(seconds);
  while (out.ends[0] >= 0 || err.ends[0] >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      ADD_FAILURE() << "the program ran for more than " << seconds << " seconds";
      kill(child, SIGKILL);
      break;
    }
    // poll passes over entries that are -1.
    pollfd sources[] = {{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}, {in.ends[1], POLLOUT, 0}};
    if (poll(sources, 3, static_cast<int>(left)) < 0) continue;
    if (sources[0].revents != 0) drain(out, result.out);
    if (sources[1].revents != 0) drain(err, result.err);
    if (sources[2].revents != 0) feed(in, options.input, fed);
    if (options.interrupt_on_output && !interrupted && !result.out.empty()) {
      interrupted = true;
      interrupt_time = Clock::now();
      kill(child, SIGINT);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (interrupted) {
    result.seconds_after_interrupt = std::chrono::duration<double>(Clock::now() - interrupt_time).count();
  }
  result.err = without_progress(result.err);
  return result;
}

void expect_refused_by(const RunOptions& options, const std::vector<std::string>& arguments, int exit_code,
                       const std::vector<std::string>& parts) {
  SCOPED_TRACE(::testing::PrintToString(arguments));
  const RunResult result = run_program(arguments, options);
  EXPECT_EQ(result.exit_code, exit_code);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_TRUE(result.err.starts_with(options.program.filename().string() + ": ")) << result.err;
  for (const std::string& part : parts) EXPECT_THAT(result.err, ::testing::HasSubstr(part));
}

void expect_refused(const std::vector<std::string>& arguments, int exit_code,
                    const std::vector<std::string>& parts) {
  expect_refused_by({}, arguments, exit_code, parts);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace verbatim::test
