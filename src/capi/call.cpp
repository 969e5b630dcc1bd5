#include "capi/call.h"

#include <array>
#include <filesystem>
#include <new>

namespace verbatim::capi {

namespace {

/// The thread's last error, which ends with a NUL. It has no destructor, so that it is there for calls that a
/// program makes while it ends, when the thread's other variables are gone.
thread_local std::array<char, 8192> last_error;

verbatim_status fail(verbatim_status status, std::string_view message) noexcept {
  size_t length = 0;
  try {
    const std::string line = shown(message, std::min(message.size(), last_error.size() / 4));
    length = std::min(line.size(), last_error.size() - 1);
    std::copy_n(line.data(), length, last_error.data());
  } catch (...) {
    length = 0;
  }
  last_error[length] = '\0';
  return status;
}

}  // namespace

verbatim_status report() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    switch (error.kind()) {
      case ErrorKind::kUsage:
        return fail(VERBATIM_USAGE, error.what());
      case ErrorKind::kMachine:
        return fail(VERBATIM_MACHINE, error.what());
      case ErrorKind::kBadInput:
        break;
    }
    return fail(VERBATIM_BAD_INPUT, error.what());
  } catch (const BadArgument& error) {
    return fail(VERBATIM_BAD_ARGUMENT, error.what());
  } catch (const GivenUp&) {
    return fail(VERBATIM_CANCELLED, "the progress callback ended the work");
  } catch (const std::bad_alloc&) {
    return fail(VERBATIM_MACHINE, "out of memory: free some, or use a smaller model or context");
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(VERBATIM_BAD_INPUT, "cannot use " + error.path1().string() + ": " + error.code().message());
  } catch (const std::system_error& error) {
    return fail(VERBATIM_MACHINE, error.what());
  } catch (const std::exception& error) {
    return fail(VERBATIM_BAD_INPUT, error.what());
  } catch (...) {
    return fail(VERBATIM_BAD_INPUT, "something failed without saying what");
  }
}

const char*& EngineCallback::current() {
  thread_local const char* refusal = nullptr;
  return refusal;
}

void EngineCallback::refuse_inside() {
  if (current() != nullptr) throw Error(ErrorKind::kUsage, current());
}

std::string_view text_of(const char* text, size_t length, const char* name) {
  if (length == 0 && text == nullptr) return {};
  need(text, name);
  if (length == VERBATIM_TO_NUL) return text;
  if (length > static_cast<size_t>(PTRDIFF_MAX)) {
    throw BadArgument(std::string("the length of ") + name + " cannot be meant");
  }
  return {text, length};
}

}  // namespace verbatim::capi

extern "C" const char* verbatim_error_message(void) {
  return verbatim::capi::last_error.data();
}
