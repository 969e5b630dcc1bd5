#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "verbatim/verbatim.h"
#include "verbatim/verbatim_c.h"

namespace verbatim::capi {

/// Thrown for an argument that is NULL or a handle that cannot be used. `what()` is the line for the caller.
class BadArgument : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown out of work whose progress callback has ended it.
struct GivenUp {};

/// Makes the exception that is being handled the thread's last error and returns its status.
verbatim_status report() noexcept;

/// Runs the body of a function of the interface. Nothing that the body throws gets out.
template <typename Body>
verbatim_status call(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return VERBATIM_OK;
  } catch (...) {
    return report();
  }
}

/// Marks the thread as one that an engine makes call a callback of the program, as long as the object lives.
class EngineCallback {
 public:
  static constexpr const char* kOfARequest =
      "this function was called from a callback of a request, which may only poll, cancel and close streams: "
      "let another thread call it";
  static constexpr const char* kOfPrepare =
      "this function was called from the progress callback of verbatim_engine_prepare(), which may only "
      "poll, cancel and close streams: call it when that has returned";

  /// `refusal` is the line for calls that must not be made meanwhile.
  explicit EngineCallback(const char* refusal = kOfARequest) : outer_(std::exchange(current(), refusal)) {}
  ~EngineCallback() { current() = outer_; }
  EngineCallback(const EngineCallback&) = delete;
  EngineCallback& operator=(const EngineCallback&) = delete;

  /// Throws Error(kUsage) inside a callback. A thread of an engine cannot wait for the engine, let alone for
  /// its own end. To be called before the engine's handle is looked up: a callback must not become an owner
  /// of the engine, which would end on the callback's thread if every other owner let go meanwhile.
  static void refuse_inside();

 private:
  /// The refusal of the innermost callback that the thread is in; null outside.
  static const char*& current();

  const char* outer_;
};

/// Refuses a NULL pointer, which `name` names.
template <typename T>
T& need(T* pointer, const char* name) {
  if (pointer == nullptr) throw BadArgument(std::string(name) + " is NULL");
  return *pointer;
}

/// A place for what a function gives out, which is emptied at once.
template <typename T>
T* cleared(T* out, const char* name) {
  need(out, name) = T{};
  return out;
}

/// A text of the caller's.
std::string_view text_of(const char* text, size_t length, const char* name);

/// Elements of the caller's; none where the count is 0.
template <typename T>
std::span<T> list_of(T* elements, size_t count, const char* name) {
  constexpr size_t kMost = size_t{1} << 31;
  if (count == 0) return {};
  need(elements, name);
  if (count > kMost) throw BadArgument(std::string("the number of ") + name + " cannot be meant");
  return {elements, count};
}

inline std::vector<int32_t> tokens_of(const int32_t* tokens, size_t count) {
  const std::span<const int32_t> list = list_of(tokens, count, "tokens");
  return {list.begin(), list.end()};
}

/// Writes as much of a list as there is room for.
template <typename T>
void write_out(std::span<const T> list, T* out, size_t capacity, size_t* count) {
  const size_t written = std::min(list.size(), capacity);
  if (written > 0) std::copy_n(list.data(), written, &need(out, "the place for what is written"));
  *count = list.size();
}

/// The caller's struct, of which the caller knows so many bytes, and which is zeroed at once.
template <typename T>
class StructToFill {
 public:
  StructToFill(T* out, size_t size) : out_(out), size_(size) {
    need(out, "the struct to fill in");
    if (size == 0 || size > (size_t{1} << 16)) throw BadArgument("the size of a struct cannot be meant");
    std::memset(static_cast<void*>(out), 0, size);
  }
  /// Fills in as much as the caller knows. What only the caller knows stays zero.
  void operator=(const T& value) { std::memcpy(out_, &value, std::min(size_, sizeof(T))); }

 private:
  T* out_;
  size_t size_;
};

}  // namespace verbatim::capi
