#include "agent/loop/real_loop.h"

#include <signal.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <utility>

namespace verbatim::agent {

namespace {

/// Keeps SIGPIPE, which comes of writing to a program that reads no more, from ending this one. A library
/// must not change what signals do to the process, so the signal is blocked on this thread and taken away.
class NoBrokenPipes {
 public:
  NoBrokenPipes() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoBrokenPipes() {
    const timespec at_once = {};
    while (sigismember(&before_, SIGPIPE) == 0 && sigtimedwait(&pipe_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipes(const NoBrokenPipes&) = delete;
  NoBrokenPipes& operator=(const NoBrokenPipes&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
};

}  // namespace

struct RealLoop::State {
  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard{context.get_executor()};
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  Time now{0};
  uint64_t made = 0;
  std::map<uint64_t, std::unique_ptr<boost::asio::steady_timer>> timers;
};

RealLoop::RealLoop() : state_(std::make_unique<State>()) {}

RealLoop::~RealLoop() = default;

Time RealLoop::now() const {
  return state_->now;
}

void RealLoop::enter() {
  state_->now = std::chrono::duration_cast<Time>(std::chrono::steady_clock::now() - state_->start);
}

uint64_t RealLoop::after(Duration time, std::function<void()> work) {
  const uint64_t id = ++state_->made;
  auto timer = std::make_unique<boost::asio::steady_timer>(state_->context, std::max(time, Duration(0)));
  timer->async_wait([this, id, work = std::move(work)](const boost::system::error_code& error) {
    if (error || state_->timers.erase(id) == 0) return;
    enter();
    work();
  });
  state_->timers.emplace(id, std::move(timer));
  return id;
}

void RealLoop::forget(uint64_t timer) {
  state_->timers.erase(timer);
}

void RealLoop::run() {
  const NoBrokenPipes guard;
  state_->context.restart();
  state_->context.run();
}

void RealLoop::stop() {
  state_->context.stop();
}

void RealLoop::post(std::function<void()> work) {
  boost::asio::post(state_->context, [this, work = std::move(work)] {
    enter();
    work();
  });
}

boost::asio::io_context& RealLoop::context() {
  return state_->context;
}

}  // namespace verbatim::agent
