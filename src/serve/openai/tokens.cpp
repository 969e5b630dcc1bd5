#include "serve/openai/common_fields.h"
#include "serve/openai/endpoints.h"

namespace verbatim::serve {

namespace {

constexpr Field kTokenizeTable[] = {
    {.name = "model",
     .type = FieldType::kText,
     .note = "the name of a model that the server has; the first one if it is absent"},
    {.name = "content", .type = FieldType::kText, .note = "the text", .required = true},
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

Json piece_json(const Model& model, int32_t token) {
  const std::string text = model.token_text(token);
  if (text.empty()) return model.piece(token);
  try {
    require_utf8(text, "");
    return text;
  } catch (const Error&) {
    Json bytes = Json::array();
    for (const char byte : text) bytes.push_back(static_cast<int>(static_cast<unsigned char>(byte)));
    return bytes;
  }
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
                       Json tokens = Json::array();
                       for (const int32_t token : encode(model->model, {part}, bos)) {
                         if (pieces) {
                           tokens.push_back({{"id", token}, {"piece", piece_json(model->model, token)}});
                         } else {
                           tokens.push_back(token);
                         }
                       }
                       call->respond(dump({{"tokens", std::move(tokens)}}));
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
