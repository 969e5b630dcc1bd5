#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/tokenizer_json.h"
#include "tokenizer_support.h"

namespace verbatim::test {

using Json = nlohmann::json;

inline std::shared_ptr<const Tokenizer> load_json(const Json& json) {
  return parse_tokenizer_json(json.dump(), {"tokenizer.json", {}});
}

/// The message with which a tokenizer.json is refused.
inline std::string refusal(const Json& json) {
  return bad_input_message([&] { load_json(json); });
}

/// A word-by-word vocabulary: a WordPiece model of whole texts, so that the ids show the words that a
/// pre-tokenizer makes. Id 0 is what is unknown.
inline Json words_json(const std::vector<std::string>& words) {
  Json json = {{"decoder", {{"type", "Fuse"}}}, {"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}}}};
  json["model"]["vocab"]["[UNK]"] = 0;
  for (size_t i = 0; i < words.size(); ++i) json["model"]["vocab"][words[i]] = i + 1;
  return json;
}

}  // namespace verbatim::test
