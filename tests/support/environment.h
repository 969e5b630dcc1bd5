#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace verbatim::test {

/// Sets or unsets variables of the environment for the length of a test.
class Environment {
 public:
  ~Environment() {
    for (auto it = before_.rbegin(); it != before_.rend(); ++it) apply(it->first, it->second);
  }
  Environment() = default;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  void set(const std::string& name, const std::optional<std::string>& value) {
    const char* const now = std::getenv(name.c_str());
    before_.emplace_back(name, now == nullptr ? std::nullopt : std::optional<std::string>(now));
    apply(name, value);
  }

 private:
  static void apply(const std::string& name, const std::optional<std::string>& value) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

}  // namespace verbatim::test
