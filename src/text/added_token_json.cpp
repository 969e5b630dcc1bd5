#include "text/added_token_json.h"

namespace verbatim {

AddedToken parse_added_token(const Json& json, int64_t id, const std::string& where) {
  AddedToken token;
  token.content = require_string(json, "content", where);
  token.id = static_cast<Token>(id);
  token.special = bool_field(json, "special", where).value_or(false);
  token.strip_left = bool_field(json, "lstrip", where).value_or(false);
  token.strip_right = bool_field(json, "rstrip", where).value_or(false);
  token.single_word = bool_field(json, "single_word", where).value_or(false);
  token.normalized = bool_field(json, "normalized", where).value_or(!token.special);
  return token;
}

}  // namespace verbatim
