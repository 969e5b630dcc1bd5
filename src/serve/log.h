#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace verbatim::serve {

/// Writes the server's log as lines of text or of JSON, each with its time and its level.
class Log {
 public:
  /// A line goes to `write`, which may be empty.
  Log(std::function<void(const std::string&)> write, bool json);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  /// Writes a message at one of the levels "info", "warning" and "error". May be called from any thread, as
  /// may the next.
  void say(std::string_view level, const std::string& message);

  /// What a request came to.
  struct Access {
    std::string method;
    std::string path;
    int status = 0;
    bool whole = true;
    int64_t bytes = 0;
    double milliseconds = 0;
    std::string id;
    std::string peer;
  };
  /// Writes the line of a request, which holds nothing of its query, its headers but the id, and its body.
  void access(const Access& access);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace verbatim::serve
