#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace verbatim::app {

/// The prompts of one file.
struct PromptSet {
  std::string name;  ///< the file's, without folder and ending
  std::vector<std::string> prompts;
};

/// Reads a file of prompts, as parse_prompts() takes it; "-" is standard input. Throws Error(kBadInput),
/// naming file and line.
PromptSet read_prompts(const std::string& path, int64_t limit = 0);

}  // namespace verbatim::app
