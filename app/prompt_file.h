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

/// Reads a file with one JSON object per line, and blank lines. The prompt of a line is its `prompt` as it
/// stands; or its `question`, as "Question: ...\nAnswer:" (GSM8K); or the first of its `turns` (MT-bench and
/// Spec-Bench). Takes the first `limit` prompts; 0: all. Throws Error(kBadInput), naming file and line, for
/// anything else, and for a file without any prompt.
PromptSet read_prompts(const std::string& path, int64_t limit = 0);

}  // namespace verbatim::app
