#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <string_view>

#include "verbatim/engine.h"

namespace verbatim {

/// What an engine and the owner of a stream share. push(), finish() and fail() end with a call of `notify`,
/// which is made without the mutex.
struct TokenStream::State {
  /// Adds text that is final, and what a result has of the tokens from `first` on, which end with it.
  void push(std::string_view text, const GenerateResult& result, size_t first);
  /// Ends the stream,
  void finish(GenerateResult&& answer);
  /// or ends it with an error.
  void fail(std::exception_ptr reason);
  void tell() const;

  /// Request::notify, which may be empty.
  std::function<void()> notify;
  std::atomic<bool> cancelled{false};

  std::mutex mutex;
  std::condition_variable changed;
  Piece pending;  // not taken yet
  bool done = false;
  GenerateResult result;
  std::exception_ptr error;
};

}  // namespace verbatim
