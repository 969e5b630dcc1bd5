#include "checkpoint/printable.h"

namespace verbatim {

std::string printable(std::string_view name) {
  constexpr size_t kLongest = 120;
  std::string result(name.substr(0, kLongest));
  for (char& c : result) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  if (name.size() > kLongest) result += "...";
  return result;
}

}  // namespace verbatim
