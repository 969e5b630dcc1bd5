#pragma once

#include <string>

#include "text/added_tokens.h"
#include "text/json_fields.h"

namespace verbatim {

/// An added token as tokenizer.json and tokenizer_config.json describe it. Throws Error(kBadInput) naming
/// `where`.
AddedToken parse_added_token(const Json& json, int64_t id, const std::string& where);

}  // namespace verbatim
