#pragma once

#include <string>

#include "text/added_tokens.h"
#include "text/json_fields.h"

namespace verbatim {

/// Reads the description of an added token in tokenizer.json or tokenizer_config.json. Throws
/// Error(kBadInput), naming `where`, if it is malformed.
AddedToken parse_added_token(const Json& json, int64_t id, const std::string& where);

}  // namespace verbatim
