#include "serve/openai/common_fields.h"
#include "serve/openai/endpoints.h"

namespace verbatim::serve {

namespace {

constexpr Field kTokenizeTable[] = {
    {.name = "model",
     .type = FieldType::kText,
     .note = "the name of a model that the server has; the first one if it is absent"},
    {.name = "content",
     .type = FieldType::kText,
     .note = "the text, of 1,000,000 tokens at most",
     .required = true},
    {.name = "add_special",
     .type = FieldType::kBoolean,
     .note = "true: begins with the beginning-of-sequence token, if the model wants one"},
    {.name = "parse_special",
     .type = FieldType::kBoolean,
     .note = "false: special tokens that are spelled out in the text stay text; true if it is absent"},
    {.name = "with_pieces",
     .type = FieldType::kBoolean,
     .note =
         "true: the answer has objects with `id` and `piece`, which is a list of bytes where it is no UTF-8"},
};

constexpr Field kDetokenizeTable[] = {
    {.name = "model",
     .type = FieldType::kText,
     .note = "the name of a model that the server has; the first one if it is absent"},
    {.name = "tokens", .type = FieldType::kList, .note = "the tokens", .required = true},
};

/// Tokens of the largest text that is tokenized.
constexpr size_t kMostTokens = 1'000'000;

Json piece_json(const Model& model, int32_t token) {
  const std::string text = model.token_text(token);
  if (text.empty()) return model.piece(token);
  if (find_invalid_utf8(text) == std::string::npos) return text;
  Json bytes = Json::array();
  for (const char byte : text) bytes.push_back(static_cast<int>(static_cast<unsigned char>(byte)));
  return bytes;
}

}  // namespace

const FieldTable kTokenizeFields = kTokenizeTable;
const FieldTable kDetokenizeFields = kDetokenizeTable;

void tokenize(const Context& context, const std::shared_ptr<Call>& call) {
  const Json body = parse_body(call->request().body);
  const Fields fields(body, kTokenizeFields);
  const PromptPart part{.text = *fields.text("content"),
                        .from_template = fields.boolean("parse_special").value_or(true)};
  const bool bos = fields.boolean("add_special").value_or(false);
  const bool pieces = fields.boolean("with_pieces").value_or(false);
  context.with_model(call, fields.text("model").value_or(""),
                     [call, part, bos, pieces](const std::shared_ptr<LoadedModel>& model) {
                       const std::vector<int32_t> tokens = encode(model->model, {part}, bos);
                       if (tokens.size() > kMostTokens) {
                         throw HttpError(400,
                                         fmt::format("content has {} tokens; this server tells {} at most",
                                                     tokens.size(), kMostTokens),
                                         "content", "invalid_value");
                       }
                       // As text at once: a JSON value of each token would take many times the memory.
                       std::string body = "{\"tokens\":[";
                       for (const int32_t token : tokens) {
                         if (body.back() != '[') body += ',';
                         body += pieces ? dump({{"id", token}, {"piece", piece_json(model->model, token)}})
                                        : std::to_string(token);
                       }
                       call->respond(body + "]}");
                     });
}

void detokenize(const Context& context, const std::shared_ptr<Call>& call) {
  const Json body = parse_body(call->request().body);
  const Fields fields(body, kDetokenizeFields);
  std::vector<int64_t> tokens;
  for (const Json& each : *fields.find("tokens")) {
    if (!each.is_number_integer()) fields.refuse("tokens", "must be a list of tokens", "invalid_type");
    tokens.push_back(each.get<int64_t>());
  }
  context.with_model(
      call, fields.text("model").value_or(""), [call, tokens](const std::shared_ptr<LoadedModel>& model) {
        std::vector<int32_t> good;
        for (const int64_t token : tokens) {
          if (token < 0 || token >= model->model.vocab_size()) {
            throw HttpError(400,
                            fmt::format("tokens has token {}, outside the vocabulary of {} tokens", token,
                                        model->model.vocab_size()),
                            "tokens", "invalid_value");
          }
          good.push_back(static_cast<int32_t>(token));
        }
        call->respond(dump({{"content", model->model.decode(good)}}));
      });
}

}  // namespace verbatim::serve
