#include "serve/openai/prompts.h"

namespace verbatim::serve {

namespace {

std::vector<int32_t> read_tokens(const Fields& fields, std::string_view name, const Json& list) {
  std::vector<int32_t> tokens;
  tokens.reserve(list.size());
  for (const Json& each : list) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (!each.is_number_integer() || each.get<double>() < 0 || each.get<double>() > kMost) {
      fields.refuse(name, "must be a text or a list of texts, of tokens, or of lists of tokens",
                    "invalid_type");
    }
    tokens.push_back(each.get<int32_t>());
  }
  return tokens;
}

/// The special tokens of models that fill in, as they go before the parts of the prompt.
struct FillIn {
  const char* prefix;
  const char* suffix;
  const char* middle;
  bool suffix_first = false;
};

constexpr FillIn kFillIns[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},
    {"<PRE>", "<SUF>", "<MID>"},
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
    {"[PREFIX]", "[SUFFIX]", nullptr, true},
};

}  // namespace

std::vector<Prompt> read_prompts(const Fields& fields, std::string_view name) {
  constexpr size_t kMost = 2048;
  const Json* const value = fields.find(name);
  if (value == nullptr) fields.refuse(name, "is missing", "missing_required_parameter");
  if (value->is_string()) return {value->get<std::string>()};
  if (value->empty()) fields.refuse(name, "must not be empty", "invalid_value");
  std::vector<Prompt> prompts;
  if (value->front().is_number()) {
    prompts.emplace_back(read_tokens(fields, name, *value));
    return prompts;
  }
  if (value->size() > kMost) fields.refuse(name, "must be 2048 prompts at most", "invalid_value");
  for (const Json& each : *value) {
    if (each.is_string()) {
      prompts.emplace_back(each.get<std::string>());
    } else {
      // A number among them is no prompt, and read_tokens() refuses a list that holds a list.
      prompts.emplace_back(read_tokens(fields, name, each.is_array() ? each : *value));
    }
  }
  return prompts;
}

std::vector<int32_t> tokens_of(const Model& model, const Prompt& prompt, const std::string& field) {
  const auto* const text = std::get_if<std::string>(&prompt);
  std::vector<int32_t> tokens =
      text != nullptr ? model.encode(*text) : std::get<std::vector<int32_t>>(prompt);
  if (tokens.empty()) throw HttpError(400, field + " has an empty prompt", field, "invalid_value");
  for (const int32_t token : tokens) {
    if (token < model.vocab_size()) continue;
    throw HttpError(
        400,
        fmt::format("{} has token {}, outside the vocabulary of {} tokens", field, token, model.vocab_size()),
        field, "invalid_value");
  }
  return tokens;
}

std::vector<int32_t> fill_in_prompt(const Model& model, std::string_view prefix, std::string_view suffix) {
  for (const FillIn& each : kFillIns) {
    const auto found = [&](const char* spelling) {
      return spelling == nullptr || model.find_token(spelling).has_value();
    };
    if (!found(each.prefix) || !found(each.suffix) || !found(each.middle)) continue;
    std::vector<int32_t> tokens = model.encode("");  // the beginning of the sequence
    const auto add = [&](const char* mark, std::string_view text) {
      tokens.push_back(*model.find_token(mark));
      const std::vector<int32_t> more = encode(model, {{.text = std::string(text)}}, false);
      tokens.insert(tokens.end(), more.begin(), more.end());
    };
    if (each.suffix_first) add(each.suffix, suffix);
    add(each.prefix, prefix);
    if (!each.suffix_first) add(each.suffix, suffix);
    if (each.middle != nullptr) tokens.push_back(*model.find_token(each.middle));
    return tokens;
  }
  throw HttpError(400, "suffix: this model has no tokens for filling in", "suffix", "unsupported_parameter");
}

std::vector<int32_t> fill_in_ends(const Model& model) {
  std::vector<int32_t> ends;
  for (const char* const spelling :
       {"<|endoftext|>", "<|file_sep|>", "<|fim_pad|>", "<EOT>", "▁<EOT>", "<fim_pad>", "<file_sep>"}) {
    if (const std::optional<int32_t> token = model.find_token(spelling)) ends.push_back(*token);
  }
  return ends;
}

}  // namespace verbatim::serve
