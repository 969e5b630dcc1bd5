#include "text/tokenizer_config.h"

#include <charconv>

#include "base/error.h"
#include "text/added_token_json.h"

namespace verbatim {

namespace {

// A special token is named by its text, or by an object that holds it.
std::optional<std::string> special_token(const Json& json, const char* name, const std::string& where) {
  const Json* field = find_field(json, name);
  if (field == nullptr) return std::nullopt;
  return field->is_object() ? string_field(*field, "content", where) : string_field(json, name, where);
}

void read_special_tokens(const Json& json, const std::string& where, TokenizerConfig& config) {
  for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    if (const auto text = special_token(json, name, where)) config.special.push_back(*text);
  }
  if (!config.bos) config.bos = special_token(json, "bos_token", where);
  if (!config.eos) config.eos = special_token(json, "eos_token", where);
}

int64_t parse_id(const std::string& text, const std::string& where) {
  int32_t id = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0) {
    bad_input("{}: a key of 'added_tokens_decoder' is not a token id", where);
  }
  return id;
}

}  // namespace

TokenizerConfig parse_tokenizer_config(std::string_view text, const std::string& where) {
  const Json json = parse_json_object(text, where);
  TokenizerConfig config;
  config.add_bos = bool_field(json, "add_bos_token", where);
  config.add_eos = bool_field(json, "add_eos_token", where);
  config.legacy = bool_field(json, "legacy", where);
  config.add_prefix_space = bool_field(json, "add_prefix_space", where);
  read_special_tokens(json, where, config);
  if (const Json* decoder = find_field(json, "added_tokens_decoder")) {
    if (!decoder->is_object()) bad_input("{}: 'added_tokens_decoder' must be an object", where);
    for (const auto& item : decoder->items()) {
      config.added.push_back(parse_added_token(item.value(), parse_id(item.key(), where), where));
    }
  }
  return config;
}

TokenizerConfig tokenizer_config_of(const TokenizerFiles& files) {
  TokenizerConfig config;
  const std::string settings = "tokenizer_config.json";
  if (const std::string* const text = files.find(settings)) {
    config = parse_tokenizer_config(*text, files.where(settings));
  }
  const std::string map = "special_tokens_map.json";
  if (const std::string* const text = files.find(map)) {
    const std::string where = files.where(map);
    read_special_tokens(parse_json_object(*text, where), where, config);
  }
  return config;
}

void place_added_token(const AddedToken& token, const std::string& where, Vocabulary& vocabulary) {
  require_plausible_id(token.id, vocabulary.ids.size(), where);
  const bool own = vocabulary.has(token.id) && !vocabulary.pieces[token.id].added &&
                   vocabulary.pieces[token.id].text == token.content;
  vocabulary.set(token.id, token.content, token.special ? PieceKind::kControl : PieceKind::kNormal,
                 token.special ? std::string() : token.content);
  vocabulary.pieces[token.id].added = !own;
}

void apply_tokenizer_config(const TokenizerConfig& config, const std::string& where, Vocabulary& vocabulary,
                            AddedTokens& added) {
  for (const AddedToken& token : config.added) {
    place_added_token(token, where, vocabulary);
    added.add(token, where);
  }
  for (const std::string& text : config.special) {
    const auto id = vocabulary.find(text);
    if (!id) continue;
    AddedToken token;
    token.content = text;
    token.id = *id;
    token.special = true;
    place_added_token(token, where, vocabulary);
    added.add(token, where);
  }
  if (config.bos && vocabulary.find(*config.bos)) vocabulary.bos = vocabulary.find(*config.bos);
  if (config.eos && vocabulary.find(*config.eos)) vocabulary.eos = vocabulary.find(*config.eos);
  if (config.add_bos) vocabulary.add_bos = *config.add_bos;
  if (!config.add_eos || !vocabulary.eos) return;
  const std::vector<Token> end = {*vocabulary.eos};
  if (*config.add_eos && vocabulary.after.empty()) vocabulary.after = end;
  if (!*config.add_eos && vocabulary.after == end) vocabulary.after.clear();
}

}  // namespace verbatim
