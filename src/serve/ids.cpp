#include "serve/ids.h"

#include <chrono>
#include <random>

#include "verbatim/verbatim.h"

namespace verbatim::serve {

std::string new_id(std::string_view prefix) {
  std::random_device device;
  return fmt::format("{}{:08x}{:08x}{:08x}", prefix, device(), device(), device());
}

int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string system_fingerprint() {
  return fmt::format("verbatim-{}", version());
}

}  // namespace verbatim::serve
