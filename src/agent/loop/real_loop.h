#pragma once

#include <memory>

#include "agent/loop/loop.h"

namespace boost::asio {
class io_context;
}

namespace verbatim::agent {

/// The loop of Boost.Asio, on the steady clock.
class RealLoop : public Loop {
 public:
  RealLoop();
  ~RealLoop() override;
  RealLoop(const RealLoop&) = delete;
  RealLoop& operator=(const RealLoop&) = delete;

  Time now() const override;
  uint64_t after(Duration time, std::function<void()> work) override;
  void forget(uint64_t timer) override;

  /// Works until stop() is called.
  void run();
  void stop();
  /// Has the loop call a function; may be called from any thread.
  void post(std::function<void()> work);
  /// Begins a call from the loop: the clock goes on. What completes on the context calls this first.
  void enter();
  /// For sockets, pipes and processes.
  boost::asio::io_context& context();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verbatim::agent
