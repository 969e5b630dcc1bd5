#include <bit>

#include "serve/chat_prompt.h"
#include "serve/openai/common_fields.h"
#include "serve/openai/endpoints.h"
#include "serve/openai/prompts.h"

namespace verbatim::serve {

namespace {

constexpr Field kEmbeddingTable[] = {
    {.name = "model",
     .type = FieldType::kText,
     .note = "the name of a model that the server has; the first one if it is absent"},
    {.name = "input",
     .type = FieldType::kTextOrList,
     .note = "a text, a list of texts, a list of tokens, or a list of such lists",
     .required = true},
    {.name = "encoding_format",
     .type = FieldType::kText,
     .note = "\"float\" or \"base64\" (of little-endian 32-bit floats); \"float\" if it is absent"},
    {.name = "pooling",
     .type = FieldType::kText,
     .note =
         "this server's own: \"mean\" of all tokens' hidden states or the \"last\" token's; \"mean\" if it "
         "is absent. The answer says which, as verbatim.pooling"},
    {.name = "dimensions",
     .use = FieldUse::kRefused,
     .note = "vectors have the size of the model's hidden state"},
    label("user", FieldType::kText),
};

std::string base64(const std::vector<float>& values) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  static_assert(std::endian::native == std::endian::little);
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

/// A request on its way: its inputs are embedded one after the other, so that others have their turns.
struct Embedding {
  std::shared_ptr<Call> call;
  std::shared_ptr<LoadedModel> model;
  std::vector<std::vector<int32_t>> inputs;
  EmbedOptions options;
  bool as_base64 = false;
  std::string data;  // the vectors as JSON: values of their numbers would take many times the memory
  size_t done = 0;
  int64_t tokens = 0;
};

void answer(const Embedding& own) {
  Json json = {{"model", own.model->name}};
  json["usage"] = {{"prompt_tokens", own.tokens}, {"total_tokens", own.tokens}};
  json["verbatim"] = {{"pooling", own.options.pooling == Pooling::kMean ? "mean" : "last"},
                      {"normalized", own.options.normalize},
                      {"reading", own.options.reading}};
  own.call->respond("{\"object\":\"list\",\"data\":[" + own.data + "]," + dump(json).substr(1));
}

void embed_next(const Context& context, const std::shared_ptr<Embedding>& own) {
  const size_t index = own->done++;
  if (index == own->inputs.size()) {
    answer(*own);
    return;
  }
  const std::vector<float> vector = embed(own->model->model, own->inputs[index], own->options);
  own->tokens += std::ssize(own->inputs[index]);
  if (index > 0) own->data += ',';
  own->data += dump({{"object", "embedding"},
                     {"index", index},
                     {"embedding", own->as_base64 ? Json(base64(vector)) : Json(vector)}});
  context.go_on_computing(own->call, [&context, own] { embed_next(context, own); });
}

}  // namespace

const FieldTable kEmbeddingsFields = kEmbeddingTable;

void embeddings(const Context& context, const std::shared_ptr<Call>& call) {
  const auto body = std::make_shared<const Json>(parse_body(call->request().body));
  const Fields fields(*body, kEmbeddingsFields);
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    fields.refuse("encoding_format", "must be \"float\" or \"base64\"", "invalid_value");
  }
  const std::string pooling = fields.text("pooling").value_or("mean");
  if (pooling != "mean" && pooling != "last") {
    fields.refuse("pooling", "must be \"mean\" or \"last\"", "invalid_value");
  }
  const auto own = std::make_shared<Embedding>();
  own->call = call;
  own->as_base64 = format == "base64";
  own->options.pooling = pooling == "mean" ? Pooling::kMean : Pooling::kLast;
  own->options.threads = context.options.engine.threads;
  context.with_model(
      call, fields.text("model").value_or(""),
      [&context, own, prompts = read_prompts(fields, "input")](const std::shared_ptr<LoadedModel>& model) {
        own->model = model;
        own->options.reading = model->recipes.front().reading;
        for (const Prompt& each : prompts) {
          own->inputs.push_back(tokens_of(model->model, each, "input"));
          check_prompt_length(*model, context.options, std::ssize(own->inputs.back()));
        }
        context.compute(own->call, [&context, own] { embed_next(context, own); });
      });
}

}  // namespace verbatim::serve
