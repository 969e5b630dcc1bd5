#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace verbatim::agent {

/// What is wrong with a plan, where, and what to write instead, in words for the model that wrote it and for
/// people.
struct PlanError : std::runtime_error {
  PlanError(int64_t line_, int64_t column_, const std::string& message)
      : std::runtime_error("line " + std::to_string(line_) +
                           (column_ > 0 ? ", column " + std::to_string(column_) : std::string()) + ": " +
                           message),
        line(line_),
        column(column_) {}

  int64_t line;    ///< from 1
  int64_t column;  ///< in bytes from 1; 0: the line as a whole
};

}  // namespace verbatim::agent
