#include "base/printable.h"

#include "verbatim/text.h"

namespace verbatim {

std::string printable(std::string_view name) {
  constexpr size_t kLongest = 120;
  return shown(name, kLongest);
}

}  // namespace verbatim
