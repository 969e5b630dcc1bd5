#include "capi/call.h"

#include <filesystem>
#include <new>

namespace verbatim::capi {

namespace {

thread_local std::string last_error;

verbatim_status fail(verbatim_status status, std::string_view message) noexcept {
  try {
    last_error = shown(message, message.size());
  } catch (...) {
    last_error.clear();
  }
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

int& EngineCallback::depth() {
  thread_local int depth = 0;
  return depth;
}

void EngineCallback::refuse_inside() {
  if (depth() == 0) return;
  throw Error(
      ErrorKind::kUsage,
      "this function was called from a callback on a thread of an engine, which may only poll, cancel "
      "and close streams: let another thread call it");
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
  return verbatim::capi::last_error.c_str();
}
