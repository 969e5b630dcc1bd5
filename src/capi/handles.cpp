#include "capi/handles.h"

#include <string>
#include <unordered_map>

#include "capi/call.h"

namespace verbatim::capi {

namespace {

/// Every handle that is open. A handle is a number that counts up and points nowhere, so that whatever a
/// program passes for one can be looked up without being read.
struct Registry {
  struct Entry {
    Kind kind;
    std::shared_ptr<void> object;
  };

  std::mutex mutex;
  std::unordered_map<uintptr_t, Entry> open;
  uintptr_t last = 0;
};

/// Far apart, so that a handle that a program has counted up or down is none.
constexpr uintptr_t kStep = 4096;

/// Lives until the process ends, for programs that close handles in their last moments.
Registry& registry() {
  static Registry& only = *new Registry;
  return only;
}

std::unordered_map<uintptr_t, Registry::Entry>::iterator find_entry(Registry& handles, const void* handle,
                                                                    Kind kind, const char* name) {
  if (handle == nullptr) throw BadArgument(std::string("the ") + name + " is NULL");
  const auto found = handles.open.find(reinterpret_cast<uintptr_t>(handle));
  if (found == handles.open.end()) {
    throw BadArgument(std::string("the ") + name + " is closed, or is no handle of this library");
  }
  if (found->second.kind != kind) {
    throw BadArgument(std::string("a handle of another kind was given for the ") + name);
  }
  return found;
}

}  // namespace

std::shared_ptr<void> find(const void* handle, Kind kind, const char* name) {
  Registry& handles = registry();
  const std::lock_guard lock(handles.mutex);
  return find_entry(handles, handle, kind, name)->second.object;
}

void* give_out(std::shared_ptr<void> object, Kind kind) {
  Registry& handles = registry();
  const std::lock_guard lock(handles.mutex);
  const uintptr_t number = handles.last + kStep;
  handles.open.emplace(number, Registry::Entry{kind, std::move(object)});
  handles.last = number;
  return reinterpret_cast<void*>(number);
}

std::shared_ptr<void> take_back(const void* handle, Kind kind, const char* name) {
  Registry& handles = registry();
  const std::lock_guard lock(handles.mutex);
  const auto found = find_entry(handles, handle, kind, name);
  std::shared_ptr<void> object = std::move(found->second.object);
  handles.open.erase(found);
  return object;
}

}  // namespace verbatim::capi
