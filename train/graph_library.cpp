#include "graph_library.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/error.h"

namespace verbatim::train {

namespace {

const GraphMakers& load() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  fs::path library = folder / "verbatim-gradients.so";
  if (!fs::exists(library, ignored)) library = folder.parent_path() / "verbatim-gradients.so";
  // The library's own dependencies come first where names are looked up.
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (opened == nullptr) fail(ErrorKind::kMachine, "cannot load the library with gradients: {}", dlerror());
  void* const found = dlsym(opened, "verbatim_graph_makers");
  if (found == nullptr) fail(ErrorKind::kMachine, "{} is of another version", library.string());
  return *reinterpret_cast<const GraphMakers* (*)()>(found)();
}

}  // namespace

const GraphMakers& graph_makers() {
  static const GraphMakers& makers = load();
  return makers;
}

}  // namespace verbatim::train
