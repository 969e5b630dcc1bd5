#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::app {

/// Reads a JSON list of token ids, or the object with such a list that `verbatim tokenize --json` prints. The
/// ids are whole numbers, but need not belong to any vocabulary. Throws Error(kBadInput), naming the text
/// `where` ("ids.json"), for anything else.
std::vector<int32_t> parse_token_list(std::string_view text, const std::string& where);

}  // namespace verbatim::app
