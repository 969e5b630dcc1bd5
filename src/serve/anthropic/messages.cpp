#include "serve/anthropic/endpoints.h"
#include "serve/anthropic/message_writer.h"
#include "serve/chat_prompt.h"
#include "serve/sampling_fields.h"

namespace verbatim::serve {
namespace {

/// Does what shared code does for all interfaces, with Anthropic's names in its errors.
void translated(const std::function<void()>& work) {
  try {
    work();
  } catch (const HttpError& error) {
    throw with_anthropic_names(error);
  }
}

}  // namespace

void messages(const Context& context, const std::shared_ptr<Call>& call) {
  const auto request = std::make_shared<const MessageRequest>(call->request().body, kMessagesFields);
  context.with_model(call, request->model,
                     [&context, call, request](const std::shared_ptr<LoadedModel>& model) {
                       Request one;
                       one.options.sampling = read_sampling(request->fields, model->model);
                       one.options.stop = request->stop;
                       one.options.max_tokens = request->max_tokens;
                       translated([&] { hold_to(*model, request->question, one.options); });
                       one.prompt = request->prompt(*model);
                       const int64_t tokens = std::ssize(one.prompt);
                       check_prompt_length(*model, context.options, tokens);
                       one.recipe = model->recipe_for(request->extension);
                       auto writer = message_writer({call, request, model, one.recipe, one.options, tokens});
                       std::vector<Request> requests;
                       requests.push_back(std::move(one));
                       context.answers.start(call, model, std::move(requests), std::move(writer));
                     });
}

void count_message_tokens(const Context& context, const std::shared_ptr<Call>& call) {
  const auto request = std::make_shared<const MessageRequest>(call->request().body, kCountTokensFields);
  context.with_model(call, request->model, [call, request](const std::shared_ptr<LoadedModel>& model) {
    call->respond(dump({{"input_tokens", std::ssize(request->prompt(*model))}}));
  });
}

}  // namespace verbatim::serve
