#pragma once

#include <stdexcept>
#include <string>

namespace verbatim {

/// Why an operation failed. The value is the exit code of the command line.
enum class ErrorKind : int {
  kBadInput = 1,  ///< a file, a prompt or a setting is wrong; the message says what and where
  kUsage = 2,     ///< the caller used the program or the API wrongly
  kMachine = 3,   ///< the machine lacks something: memory, an instruction set
};

/// The one exception type that crosses the API. `what()` is one line for a person: what is wrong, where, and
/// what to do about it.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace verbatim
