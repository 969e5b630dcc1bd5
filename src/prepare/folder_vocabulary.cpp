#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"
#include "prepare/converted_vocabulary.h"
#include "text/gguf_pre_tokenizers.h"
#include "text/gguf_tokenizer.h"
#include "text/sentencepiece_model.h"

namespace verbatim {

namespace {

using nlohmann::ordered_json;
using PieceType = SentencePieceModel::Type;

/// The vocabulary of a GGUF file as it lists it. The tokenizer has checked the lists.
struct ListedTokens {
  std::vector<std::string> texts;
  std::vector<int64_t> types;
};

ListedTokens listed_tokens(const GgufFile& gguf) {
  ListedTokens listed;
  listed.texts = gguf_array(gguf, "tokenizer.ggml.tokens")->strings;
  const auto types = gguf_array(gguf, "tokenizer.ggml.token_type");
  listed.types = types != nullptr ? types->integers : std::vector<int64_t>(listed.texts.size(), 1);
  return listed;
}

bool is_type(int64_t type, PieceType wanted) {
  return type == static_cast<int64_t>(wanted);
}

/// Whether a token only fills the list up to the rows of the model.
bool is_filling(const ListedTokens& listed, size_t token) {
  return is_type(listed.types[token], PieceType::kUnused) &&
         listed.texts[token] == filling_text(static_cast<int64_t>(token));
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void append_number_field(std::string& out, uint32_t field, uint64_t value) {
  append_varint(out, field << 3);
  append_varint(out, value);
}

void append_bytes_field(std::string& out, uint32_t field, std::string_view bytes) {
  append_varint(out, field << 3 | 2);
  append_varint(out, bytes.size());
  out += bytes;
}

/// A tokenizer.model with the pieces of a GGUF file, by the definition of SentencePiece's messages.
std::string sentencepiece_file(const GgufFile& gguf, const ListedTokens& listed, const Tokenizer& tokenizer) {
  const auto scores = gguf_array(gguf, "tokenizer.ggml.scores");
  std::string file;
  int64_t unknown = gguf_integer(gguf, "tokenizer.ggml.unknown_token_id").value_or(-1);
  size_t count = listed.texts.size();  // less what fills the list up behind the last token
  while (count > 0 && is_filling(listed, count - 1)) --count;
  for (size_t i = 0; i < count; ++i) {
    std::string piece;
    append_bytes_field(piece, 1, listed.texts[i]);
    const auto score = static_cast<float>(scores->floats[i]);
    append_varint(piece, 2 << 3 | 5);
    piece.append(reinterpret_cast<const char*>(&score), sizeof(score));
    append_number_field(piece, 3, static_cast<uint64_t>(listed.types[i]));
    append_bytes_field(file, 1, piece);
    if (unknown < 0 && is_type(listed.types[i], PieceType::kUnknown)) unknown = static_cast<int64_t>(i);
  }
  std::string trainer;
  append_number_field(trainer, 3, 2);   // model_type: BPE
  append_number_field(trainer, 35, 1);  // byte_fallback
  append_number_field(trainer, 40, static_cast<uint64_t>(unknown));
  append_number_field(trainer, 41, static_cast<uint64_t>(int64_t{tokenizer.bos().value_or(-1)}));
  append_number_field(trainer, 42, static_cast<uint64_t>(int64_t{tokenizer.eos().value_or(-1)}));
  append_number_field(trainer, 43, static_cast<uint64_t>(int64_t{-1}));  // pad_id
  append_bytes_field(file, 2, trainer);
  std::string normalizer;
  append_bytes_field(normalizer, 1, "identity");
  append_number_field(normalizer, 3, gguf_bool(gguf, "tokenizer.ggml.add_space_prefix").value_or(true));
  append_number_field(normalizer, 4, 0);  // remove_extra_whitespaces
  append_number_field(normalizer, 5, 1);  // escape_whitespaces
  append_bytes_field(file, 3, normalizer);
  return file;
}

ordered_json pre_tokenizer_json(const std::string& name, const std::string& where) {
  ordered_json steps = ordered_json::array();
  for (const std::string& pattern : gguf_pre_tokenizer_patterns(name, where)) {
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  }
  steps.push_back(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}});
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

ordered_json byte_level_step() {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
}

/// What the vocabulary puts behind a text that nothing continues.
std::vector<Token> end_of_text(const Tokenizer& tokenizer) {
  return tokenizer.encode("", {.add_bos = false, .add_end = true});
}

/// The step that puts tokens before a text that begins one, and behind a text that nothing continues.
ordered_json post_processor_json(const Tokenizer& tokenizer) {
  const std::vector<Token> before = tokenizer.encode("", {.add_bos = true});
  const std::vector<Token> after = end_of_text(tokenizer);
  if (before.empty() && after.empty()) return byte_level_step();
  ordered_json single = ordered_json::array();
  ordered_json pair = ordered_json::array();
  ordered_json named = ordered_json::object();
  const auto add_tokens = [&](const std::vector<Token>& tokens, std::initializer_list<ordered_json*> lists) {
    for (const Token token : tokens) {
      const std::string text(tokenizer.vocabulary_text(token));
      for (ordered_json* const list : lists) {
        list->push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
      }
      named[text] = {
          {"id", text}, {"ids", ordered_json::array({token})}, {"tokens", ordered_json::array({text})}};
    }
  };
  const auto add_text = [](ordered_json& list, const char* id, int type) {
    list.push_back({{"Sequence", {{"id", id}, {"type_id", type}}}});
  };
  add_tokens(before, {&single, &pair});
  add_text(single, "A", 0);
  add_text(pair, "A", 0);
  add_text(pair, "B", 1);
  add_tokens(after, {&single, &pair});
  ordered_json result = {{"type", "TemplateProcessing"}};
  result["single"] = single;
  result["pair"] = pair;
  result["special_tokens"] = named;
  return result;
}

/// A tokenizer.json with the byte-level vocabulary of a GGUF file.
std::string byte_level_file(const GgufFile& gguf, const ListedTokens& listed, const Tokenizer& tokenizer,
                            const std::string& where) {
  const std::string name = gguf_string(gguf, "tokenizer.ggml.pre").value_or("default");
  ordered_json vocabulary = ordered_json::object();
  ordered_json added = ordered_json::array();
  for (size_t i = 0; i < listed.texts.size(); ++i) {
    if (is_filling(listed, i)) continue;
    const auto id = static_cast<Token>(i);
    const bool control = tokenizer.is_control(id);
    if (!control && !is_type(listed.types[i], PieceType::kUserDefined)) {
      vocabulary[listed.texts[i]] = i;
      continue;
    }
    added.push_back({{"id", i},
                     {"content", listed.texts[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", control}});
  }
  ordered_json json = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  json["added_tokens"] = added;
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = pre_tokenizer_json(name, where);
  json["post_processor"] = post_processor_json(tokenizer);
  json["decoder"] = byte_level_step();
  ordered_json& model = json["model"];
  model = {{"type", "BPE"},
           {"dropout", nullptr},
           {"unk_token", nullptr},
           {"continuing_subword_prefix", nullptr},
           {"end_of_word_suffix", nullptr},
           {"fuse_unk", false},
           {"byte_fallback", false},
           {"ignore_merges", gguf_pre_tokenizer(name, where).ignore_merges}};
  model["vocab"] = std::move(vocabulary);
  model["merges"] = gguf_array(gguf, "tokenizer.ggml.merges")->strings;
  return json.dump(1) + "\n";
}

}  // namespace

std::map<std::string, std::string> folder_vocabulary(const GgufFile& gguf, const std::string& where) {
  const auto tokenizer = make_gguf_tokenizer(gguf, where);
  const bool byte_level = gguf_string(gguf, "tokenizer.ggml.model") == "gpt2";
  const ListedTokens listed = listed_tokens(gguf);
  std::map<std::string, std::string> files;
  ordered_json config = {{"tokenizer_class", byte_level ? "PreTrainedTokenizerFast" : "LlamaTokenizer"}};
  if (byte_level) {
    files["tokenizer.json"] = byte_level_file(gguf, listed, *tokenizer, where);
  } else {
    files["tokenizer.model"] = sentencepiece_file(gguf, listed, *tokenizer);
    config["legacy"] = true;  // as GGUF files put spaces after special tokens
  }
  config["add_bos_token"] = !tokenizer->encode("", {.add_bos = true}).empty();
  if (!end_of_text(*tokenizer).empty()) config["add_eos_token"] = true;
  config["clean_up_tokenization_spaces"] = false;
  const auto name_token = [&](const char* key, const std::optional<Token>& token) {
    if (token && tokenizer->is_control(*token)) config[key] = std::string(tokenizer->vocabulary_text(*token));
  };
  name_token("bos_token", tokenizer->bos());
  name_token("eos_token", tokenizer->eos());
  if (const auto chat = gguf_string(gguf, "tokenizer.chat_template")) config["chat_template"] = *chat;
  if (const auto tools = gguf_string(gguf, "tokenizer.chat_template.tool_use")) {
    config["chat_template"] = ordered_json::array(
        {{{"name", "default"}, {"template", config.value("chat_template", std::string())}},
         {{"name", "tool_use"}, {"template", *tools}}});
  }
  files["tokenizer_config.json"] = config.dump(2) + "\n";
  return files;
}

}  // namespace verbatim
