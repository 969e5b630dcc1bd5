#include "stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "interrupt.h"
#include "progress.h"

namespace verbatim::app {

namespace {

bool is_ignored_signal(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

struct StopSignals::State {
  sigset_t signals{};
  sigset_t before{};
  std::mutex mutex;
  std::function<void()> stop;  // guarded by the mutex; none: the program ends at once
  std::atomic<int> first = 0;
  std::atomic<bool> over = false;
  std::thread thread;
};

StopSignals::StopSignals() : state_(std::make_unique<State>()) {
  State& state = *state_;
  sigemptyset(&state.signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!is_ignored_signal(signal)) sigaddset(&state.signals, signal);
  }
  sigset_t blocked = state.signals;
  sigaddset(&blocked, SIGUSR1);  // by which the thread is told to end
  pthread_sigmask(SIG_BLOCK, &blocked, &state.before);
  signal(SIGPIPE, SIG_IGN);
  state.thread = std::thread([&state] {
    sigset_t awaited = state.signals;
    sigaddset(&awaited, SIGUSR1);
    for (int signal = 0; sigwait(&awaited, &signal) == 0;) {
      if (state.over) return;
      if (signal == SIGUSR1) continue;
      int none = 0;
      state.first.compare_exchange_strong(none, signal);
      const std::lock_guard lock(state.mutex);
      if (state.stop) {
        state.stop();
      } else {
        end_progress();
        _exit(state.first == SIGINT ? kInterruptedExit : 0);
      }
    }
  });
}

StopSignals::~StopSignals() {
  state_->over = true;
  pthread_kill(state_->thread.native_handle(), SIGUSR1);
  state_->thread.join();
  pthread_sigmask(SIG_SETMASK, &state_->before, nullptr);
}

void StopSignals::on_signal(std::function<void()> stop) {
  const std::lock_guard lock(state_->mutex);
  state_->stop = std::move(stop);
}

void StopSignals::end_at_once() {
  on_signal({});
}

bool StopSignals::interrupted() const {
  return state_->first == SIGINT;
}

}  // namespace verbatim::app
