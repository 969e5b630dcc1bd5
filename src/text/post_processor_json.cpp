#include "base/error.h"
#include "base/printable.h"
#include "text/step_json.h"
#include "text/tokenizer_json_steps.h"

namespace verbatim {

namespace {

constexpr size_t kMostFrameTokens = 256;

void require_known_token(int64_t id, const Vocabulary& vocabulary, const std::string& where) {
  if (!vocabulary.has(id)) bad_input("{}: the post-processor's token {} is not in the vocabulary", where, id);
}

/// The tokens that a name in a template stands for.
std::vector<Token> tokens_of_template(const std::string& name, const Json* named,
                                      const Vocabulary& vocabulary, const std::string& where) {
  const Json* const entry = named == nullptr ? nullptr : find_field(*named, name.c_str());
  if (entry == nullptr) {
    const auto token = vocabulary.find(name);
    if (!token)
      bad_input("{}: the post-processor's token '{}' is not in the vocabulary", where, printable(name));
    return {*token};
  }
  const Json& ids = require_field(*entry, "ids", where);
  if (!ids.is_array())
    bad_input("{}: 'ids' of the post-processor's token '{}' must be a list", where, printable(name));
  std::vector<Token> tokens;
  for (const Json& json : ids) {
    const int64_t id = require_token_id(json, where);
    require_known_token(id, vocabulary, where);
    tokens.push_back(static_cast<Token>(id));
  }
  return tokens;
}

TextFrame parse_template(const Json& step, const Vocabulary& vocabulary, const std::string& where) {
  const Json& single = require_field(step, "single", where);
  if (!single.is_array()) bad_input("{}: 'single' of 'TemplateProcessing' must be a list", where);
  const Json* const named = find_field(step, "special_tokens");
  TextFrame frame;
  int texts = 0;
  for (const Json& item : single) {
    if (const Json* const special = find_field(item, "SpecialToken")) {
      const auto tokens = tokens_of_template(require_string(*special, "id", where), named, vocabulary, where);
      std::vector<Token>& side = texts == 0 ? frame.before : frame.after;
      side.insert(side.end(), tokens.begin(), tokens.end());
      if (side.size() > kMostFrameTokens)
        bad_input("{}: the post-processor adds absurdly many tokens", where);
    } else if (require_string(require_field(item, "Sequence", where), "id", where) == "A") {
      ++texts;
    } else {
      bad_input("{}: 'single' of 'TemplateProcessing' has a second text", where);
    }
  }
  if (texts != 1) bad_input("{}: 'single' of 'TemplateProcessing' must have the text once", where);
  return frame;
}

/// A token of 'BertProcessing' and the like: a pair of its text and its id.
Token parse_pair(const Json& step, const char* name, const Vocabulary& vocabulary, const std::string& where) {
  const Json& pair = require_field(step, name, where);
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string()) {
    bad_input("{}: '{}' of the post-processor must be a pair of a text and an id", where, name);
  }
  const int64_t id = require_token_id(pair[1], where);
  require_known_token(id, vocabulary, where);
  return static_cast<Token>(id);
}

TextFrame parse_processor(const Json& step, const Vocabulary& vocabulary, const std::string& where) {
  const std::string type = require_string(step, "type", where);
  if (type == "TemplateProcessing") return parse_template(step, vocabulary, where);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return {.before = {parse_pair(step, "cls", vocabulary, where)},
            .after = {parse_pair(step, "sep", vocabulary, where)}};
  }
  // 'ByteLevel' says where in the text a token stands, which nothing here asks for.
  if (type == "ByteLevel") return {};
  refuse_step("post-processor", type,
              "Sequence, ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing", where);
}

}  // namespace

TextFrame parse_post_processor(const Json& tokenizer, const Vocabulary& vocabulary,
                               const std::string& where) {
  TextFrame frame;
  for (const Json* step : steps_of(tokenizer, "post_processor", "processors", where)) {
    const TextFrame outer = parse_processor(*step, vocabulary, where);
    frame.before.insert(frame.before.begin(), outer.before.begin(), outer.before.end());
    frame.after.insert(frame.after.end(), outer.after.begin(), outer.after.end());
    if (frame.before.size() + frame.after.size() > kMostFrameTokens) {
      bad_input("{}: the post-processor adds absurdly many tokens", where);
    }
  }
  return frame;
}

}  // namespace verbatim
