#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace verbatim::app {

/// Lines of a name and a value, the values one below the other, under a heading.
class Section {
 public:
  Section(std::string& out, const char* heading) : out_(out) {
    out_ += fmt::format("{}{}\n", out_.empty() ? "" : "\n", heading);
  }
  template <typename... Args>
  void line(const char* name, fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format("  {:<18}{}\n", name, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string& out_;
};

}  // namespace verbatim::app
