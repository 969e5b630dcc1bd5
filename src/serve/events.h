#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "serve/call.h"

namespace verbatim::serve {

/// An answer as a stream of server-sent events.
class EventStream {
 public:
  explicit EventStream(std::shared_ptr<Call> call) : call_(std::move(call)) {}

  /// Begins the answer. Before that, an error is an answer of its own.
  void begin();
  bool begun() const { return begun_; }
  /// Sends an event; without a name it has only data.
  void send(std::string_view data, std::string_view name = {});
  /// Completes the answer.
  void end();
  /// Says an error: as the answer, or as an event (named "error" in Anthropic's dialect) that ends the
  /// stream.
  void fail(const HttpError& error);

 private:
  std::shared_ptr<Call> call_;
  bool begun_ = false;
};

}  // namespace verbatim::serve
