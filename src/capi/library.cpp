// What belongs to no object.

#include "capi/call.h"
#include "capi/handles.h"

using namespace verbatim;
using namespace verbatim::capi;

extern "C" {

const char* verbatim_version(void) {
  return version();
}

int verbatim_c_version(void) {
  return VERBATIM_C_VERSION;
}

const char* verbatim_status_name(int status) {
  switch (status) {
    case VERBATIM_OK:
      return "ok";
    case VERBATIM_BAD_INPUT:
      return "bad input";
    case VERBATIM_USAGE:
      return "usage";
    case VERBATIM_MACHINE:
      return "machine";
    case VERBATIM_BAD_ARGUMENT:
      return "bad argument";
    case VERBATIM_CANCELLED:
      return "cancelled";
    default:
      return "unknown";
  }
}

const char* verbatim_finish_name(int finish) {
  switch (finish) {
    case VERBATIM_FINISH_LENGTH:
      return finish_reason_name(FinishReason::kLength).data();
    case VERBATIM_FINISH_EOS:
      return finish_reason_name(FinishReason::kEndOfSequence).data();
    case VERBATIM_FINISH_STOP:
      return finish_reason_name(FinishReason::kStopString).data();
    case VERBATIM_FINISH_CONTEXT:
      return finish_reason_name(FinishReason::kContext).data();
    case VERBATIM_FINISH_CANCELLED:
      return finish_reason_name(FinishReason::kCancelled).data();
    case VERBATIM_FINISH_DEADLINE:
      return finish_reason_name(FinishReason::kDeadline).data();
    default:
      return "unknown";
  }
}

verbatim_status verbatim_recipe_names(const char* const** names, size_t* count) {
  return call([&] {
    cleared(names, "the place for the names");
    cleared(count, "the place for the count");
    static const std::vector<std::string>& texts = *new std::vector<std::string>(recipe_names());
    static const std::vector<const char*>& pointers = *[] {
      auto* const made = new std::vector<const char*>;
      for (const std::string& name : texts) made->push_back(name.c_str());
      return made;
    }();
    *names = pointers.data();
    *count = pointers.size();
  });
}

verbatim_status verbatim_use_portable_kernels(void) {
  return call([] { use_portable_kernels(); });
}

verbatim_status verbatim_machine(const char** kernels, const char** processor, int32_t* threads) {
  return call([&] {
    if (kernels != nullptr) *kernels = nullptr;
    if (processor != nullptr) *processor = nullptr;
    if (threads != nullptr) *threads = 0;
    MachineReport report = describe_machine();
    // The names of the instruction sets are few; each is kept once.
    static std::mutex& mutex = *new std::mutex;
    static std::vector<std::unique_ptr<std::string>>& kept = *new std::vector<std::unique_ptr<std::string>>;
    const std::lock_guard lock(mutex);
    const auto keep = [](std::string&& text) {
      for (const auto& each : kept) {
        if (*each == text) return each->c_str();
      }
      kept.push_back(std::make_unique<std::string>(std::move(text)));
      return kept.back()->c_str();
    };
    if (kernels != nullptr) *kernels = keep(std::move(report.kernels));
    if (processor != nullptr) *processor = keep(std::move(report.cpu));
    if (threads != nullptr) *threads = report.threads;
  });
}

}  // extern "C"
