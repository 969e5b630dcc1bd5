#include "agent/net/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>

#include "agent/json.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

extern char** environ;

namespace verbatim::agent {

namespace {

using Descriptor = boost::asio::posix::stream_descriptor;
using ErrorCode = boost::system::error_code;

constexpr size_t kKeptErrors = 2000;
constexpr Duration kKillAfter = std::chrono::milliseconds(500);
constexpr Duration kLinger = std::chrono::milliseconds(200);  // for output, when the program itself has ended
constexpr int kUnseen = 255;                                  // the status of an end that nobody can know
constexpr Duration kLookEvery = std::chrono::milliseconds(20);  // for its end, where the kernel has no pidfd

/// Variables that tools do not get unless their configuration says so.
constexpr std::array<std::string_view, 2> kSecrets = {"OPENAI_API_KEY", "VERBATIM_API_KEYS"};

struct Pipe {
  int read = -1;
  int write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw Error(ErrorKind::kMachine, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    }
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    if (read >= 0) close(read);
    if (write >= 0) close(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
};

std::vector<std::string> environment_of(const ProcessOptions& options) {
  std::vector<std::string> all;
  for (char** at = environ; *at; ++at) {
    const std::string entry = *at;
    const bool secret =
        std::find(kSecrets.begin(), kSecrets.end(), entry.substr(0, entry.find('='))) != kSecrets.end();
    if (!secret && options.environment.count(entry.substr(0, entry.find('='))) == 0) all.push_back(entry);
  }
  for (const auto& [name, value] : options.environment) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t spawn(const ProcessOptions& options, const Pipe& in, const Pipe& out, const Pipe& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write, 1);
  posix_spawn_file_actions_adddup2(&actions, errors.write, 2);
  // Not all that is open here is marked to be closed: sockets of the model's server and of other tools, and
  // whatever the program around this library has open.
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  if (!options.folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  sigset_t standard;
  sigemptyset(&standard);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&standard, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &standard);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> arguments = options.command;
  std::vector<std::string> environment = environment_of(options);
  pid_t pid = -1;
  const int code = posix_spawnp(&pid, arguments[0].c_str(), &actions, &attributes, pointers(arguments).data(),
                                pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (code != 0) {
    throw Error(
        ErrorKind::kBadInput,
        fmt::format("cannot start {}: {}", shown(options.command[0], kShownBytes), std::strerror(code)));
  }
  return pid;
}

}  // namespace

struct Process::State : std::enable_shared_from_this<Process::State> {
  State(RealLoop& loop_, ProcessHooks hooks_)
      : loop(loop_),
        hooks(std::move(hooks_)),
        in(loop.context()),
        out(loop.context()),
        errors(loop.context()),
        end(loop.context()) {}

  void read_output() {
    out.async_read_some(boost::asio::buffer(buffer),
                        [self = shared_from_this()](const ErrorCode& error, size_t count) {
                          if (self->dropped) return;
                          self->loop.enter();
                          if (count > 0 && self->hooks.output)
                            self->hooks.output({self->buffer.data(), count});
                          if (self->dropped) return;
                          if (!error) return self->read_output();
                          self->output_over = true;
                          self->tell_end();
                        });
  }

  void read_errors() {
    errors.async_read_some(boost::asio::buffer(error_buffer),
                           [self = shared_from_this()](const ErrorCode& error, size_t count) {
                             if (self->dropped) return;
                             self->last_errors.append(self->error_buffer.data(), count);
                             if (self->last_errors.size() > kKeptErrors) {
                               self->last_errors.erase(0, self->last_errors.size() - kKeptErrors);
                             }
                             if (!error) self->read_errors();
                           });
  }

  void write_next() {
    if (writing || !in.is_open()) return;
    if (sending.empty()) sending.swap(unwritten);
    if (sending.empty()) {
      if (input_over) in.close();
      return;
    }
    writing = true;
    in.async_write_some(boost::asio::buffer(sending),
                        [self = shared_from_this()](const ErrorCode& error, size_t count) {
                          self->writing = false;
                          if (self->dropped) return;
                          self->sending.erase(0, count);
                          if (error) {
                            ErrorCode ignored;
                            self->sending.clear();
                            self->unwritten.clear();
                            self->in.close(ignored);
                            return;
                          }
                          self->write_next();
                        });
  }

  void wait_for_end() {
#ifdef SYS_pidfd_open
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (descriptor >= 0) {
      end.assign(descriptor);
      end.async_wait(Descriptor::wait_read, [self = shared_from_this()](const ErrorCode& error) {
        if (error || self->dropped) return;
        self->loop.enter();
        self->look_for_end();
      });
      return;
    }
#endif
    look_for_end();
  }

  void look_for_end() {
    siginfo_t about = {};
    int failed = 0;
    do {
      failed = waitid(P_PID, static_cast<id_t>(pid), &about, WEXITED | WNOHANG | WNOWAIT);
    } while (failed != 0 && errno == EINTR);
    if (failed == 0 && about.si_pid == 0) {
      look_timer = loop.after(kLookEvery, [self = shared_from_this()] { self->look_for_end(); });
      return;
    }
    over = true;
    loop.forget(std::exchange(kill_timer, 0));
    if (failed == 0) {
      // What it has started and left behind ends before its number is given back, for that to be no other's.
      ::kill(-pid, SIGKILL);
      status = reap();
    } else {  // SIGCHLD is ignored, so the kernel has thrown the status away
      status = kUnseen;
      last_errors = "whether it succeeded cannot be known: SIGCHLD is ignored";
    }
    if (!output_over)
      linger_timer = loop.after(kLinger, [self = shared_from_this()] { self->leave_output(); });
    tell_end();
  }

  /// Takes the program's status from the kernel, as a shell shows it.
  int reap() const {
    int code = 0;
    pid_t ended = 0;
    do {
      ended = waitpid(pid, &code, 0);
    } while (ended < 0 && errno == EINTR);
    if (ended < 0) return kUnseen;
    return WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
  }

  /// Takes what its output holds now, and no more: someone who left its group keeps it open.
  void leave_output() {
    linger_timer = 0;
    constexpr int kMostPieces = 16;  // as much as a pipe holds, and one may write faster than this reads
    for (int i = 0; i < kMostPieces && !dropped && hooks.output; ++i) {
      const ssize_t count = ::read(out.native_handle(), buffer.data(), buffer.size());
      if (count <= 0) break;
      hooks.output({buffer.data(), static_cast<size_t>(count)});
    }
    if (dropped) return;
    ErrorCode ignored;
    out.close(ignored);
    output_over = true;
    tell_end();
  }

  void tell_end() {
    if (!over || !output_over || told) return;
    told = true;
    loop.forget(std::exchange(linger_timer, 0));
    ErrorCode ignored;
    in.close(ignored);
    if (hooks.ended) hooks.ended(status);
  }

  void signal(int number) const {
    if (!over) ::kill(-pid, number);
  }

  RealLoop& loop;
  ProcessHooks hooks;
  Descriptor in, out, errors, end;
  std::array<char, 65536> buffer{};
  std::array<char, 1024> error_buffer{};
  std::string sending;
  std::string unwritten;
  std::string last_errors;
  pid_t pid = -1;
  int status = 0;
  bool writing = false;
  bool input_over = false;
  bool output_over = false;
  bool over = false;
  bool told = false;
  bool dropped = false;
  uint64_t kill_timer = 0;
  uint64_t look_timer = 0;
  uint64_t linger_timer = 0;
};

Process::Process(RealLoop& loop, const ProcessOptions& options, ProcessHooks hooks)
    : state_(std::make_shared<State>(loop, std::move(hooks))) {
  Pipe in;
  Pipe out;
  Pipe errors;
  state_->pid = spawn(options, in, out, errors);
  for (const int ours : {in.write, out.read, errors.read}) fcntl(ours, F_SETFL, O_NONBLOCK);
  state_->in.assign(std::exchange(in.write, -1));
  state_->out.assign(std::exchange(out.read, -1));
  state_->errors.assign(std::exchange(errors.read, -1));
  state_->read_output();
  state_->read_errors();
  state_->wait_for_end();
}

Process::~Process() {
  State& state = *state_;
  state.dropped = true;
  state.loop.forget(state.kill_timer);
  state.loop.forget(state.look_timer);
  state.loop.forget(state.linger_timer);
  ErrorCode ignored;
  for (Descriptor* one : {&state.in, &state.out, &state.errors, &state.end}) one->close(ignored);
  if (state.over) return;
  state.signal(SIGKILL);
  state.reap();
}

void Process::write(std::string text) {
  if (state_->input_over || state_->over || !state_->in.is_open()) return;  // nobody will read it
  state_->unwritten += text;
  state_->write_next();
}

void Process::end_input() {
  state_->input_over = true;
  state_->write_next();
}

void Process::stop() {
  if (state_->over || state_->kill_timer != 0) return;
  state_->signal(SIGTERM);
  state_->kill_timer = state_->loop.after(kKillAfter, [state = state_.get()] {
    state->kill_timer = 0;
    state->signal(SIGKILL);
  });
}

void Process::kill() {
  state_->signal(SIGKILL);
}

const std::string& Process::last_errors() const {
  return state_->last_errors;
}

std::string Process::ending(int status) const {
  const std::string errors = shown(state_->last_errors, kShownAnswerBytes);
  return fmt::format("ended with status {}{}{}", status, errors.empty() ? "" : ": ", errors);
}

size_t Process::unwritten() const {
  return state_->sending.size() + state_->unwritten.size();
}

}  // namespace verbatim::agent
