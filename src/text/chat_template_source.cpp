#include "text/chat_template_source.h"

#include <span>

#include "base/error.h"
#include "base/input_file.h"
#include "checkpoint/gguf.h"
#include "text/json_fields.h"

namespace verbatim {

namespace {

/// Far above any settings with a template.
constexpr size_t kLongestSettings = size_t{1} << 26;

/// The contents of a small file beside the vocabulary, or nothing.
std::optional<std::string> settings_file(const TokenizerSource& source, const std::string& name) {
  if (!source.embedded.empty()) {
    const auto found = source.embedded.find(name);
    if (found == source.embedded.end()) return std::nullopt;
    return std::string(found->second);
  }
  const std::filesystem::path path = source.path.parent_path() / name;
  std::error_code unreadable;
  if (!std::filesystem::exists(path, unreadable)) return std::nullopt;
  return read_input(path, kLongestSettings);
}

/// A template is a text, or a list of templates with names, of which "tool_use" is for conversations with
/// tools and "default" for the others; without a default the first is taken.
void take_template(const Json& json, const std::string& where, ChatTemplateSource& result) {
  const Json* field = find_field(json, "chat_template");
  if (field == nullptr) return;
  if (field->is_string()) {
    result.text = field->get<std::string>();
    return;
  }
  if (!field->is_array()) bad_input("{}: 'chat_template' must be a text or a list of named texts", where);
  bool has_default = false;
  for (const Json& entry : *field) {
    const std::string name = require_string(entry, "name", where);
    const std::string text = require_string(entry, "template", where);
    if (name == "tool_use") result.text_with_tools = text;
    if (name == "default" || (!result.text && !has_default)) result.text = text;
    has_default |= name == "default";
  }
}

void take_special_tokens(const Json& json, const std::string& where, ChatTemplateSource& result) {
  for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    const Json* field = find_field(json, name);
    if (field == nullptr) continue;
    const auto text =
        field->is_object() ? string_field(*field, "content", where) : string_field(json, name, where);
    bool known = false;
    for (const auto& token : result.special_tokens) known |= token.first == name;
    if (text && !known) result.special_tokens.emplace_back(name, *text);
  }
}

ChatTemplateSource of_gguf(const GgufFile& gguf) {
  ChatTemplateSource result;
  result.text = gguf_string(gguf, "tokenizer.chat_template");
  result.text_with_tools = gguf_string(gguf, "tokenizer.chat_template.tool_use");
  const auto tokens = gguf_array(gguf, "tokenizer.ggml.tokens");
  constexpr std::pair<const char*, const char*> kNames[] = {{"bos_token", "tokenizer.ggml.bos_token_id"},
                                                            {"eos_token", "tokenizer.ggml.eos_token_id"},
                                                            {"unk_token", "tokenizer.ggml.unknown_token_id"},
                                                            {"pad_token", "tokenizer.ggml.padding_token_id"}};
  for (const auto& [name, key] : kNames) {
    const auto id = gguf_integer(gguf, key);
    if (!id || tokens == nullptr || *id < 0 || *id >= std::ssize(tokens->strings)) continue;
    result.special_tokens.emplace_back(name, tokens->strings[static_cast<size_t>(*id)]);
  }
  return result;
}

}  // namespace

ChatTemplateSource read_chat_template(const TokenizerSource& source) {
  if (source.kind == TokenizerSource::Kind::kNone) return {};
  if (source.kind == TokenizerSource::Kind::kGguf) {
    if (source.embedded.empty()) return of_gguf(open_gguf(source.path));
    const std::string_view bytes = source.embedded.begin()->second;
    return of_gguf(parse_gguf(std::as_bytes(std::span(bytes)), source.path.string()));
  }
  ChatTemplateSource result;
  const auto where = [&](const std::string& name) {
    return ((source.embedded.empty() ? source.path.parent_path() : source.path) / name).string();
  };
  result.text = settings_file(source, "chat_template.jinja");
  for (const std::string name : {"chat_template.json", "tokenizer_config.json", "special_tokens_map.json"}) {
    const std::optional<std::string> text = settings_file(source, name);
    if (!text) continue;
    const Json json = parse_json_object(*text, where(name));
    if (!result.text) take_template(json, where(name), result);
    take_special_tokens(json, where(name), result);
  }
  return result;
}

}  // namespace verbatim
