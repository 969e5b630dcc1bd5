#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// The prompts of a text with one JSON object per line, and blank lines. The prompt of a line is its `prompt`
/// as it stands; or its `question`, as "Question: ...\nAnswer:" (GSM8K); or the first of its `turns`
/// (MT-bench and Spec-Bench). Takes the first `limit` prompts; 0: all. Throws Error(kBadInput), naming
/// `where` and the line, for anything else, and for a text without any prompt.
std::vector<std::string> parse_prompts(std::string_view text, const std::string& where, int64_t limit = 0);

}  // namespace verbatim
