#include "serve/chat_prompt.h"
#include "serve/responses/endpoints.h"
#include "serve/responses/response_writer.h"
#include "serve/responses/run_tools.h"
#include "serve/sampling_fields.h"

namespace verbatim::serve {
namespace {

/// Does what shared code does for all interfaces, with the names of this one in its errors.
void translated(const std::function<void()>& work) {
  try {
    work();
  } catch (const HttpError& error) {
    throw with_response_names(error);
  }
}

[[noreturn]] void no_response(std::string_view id) {
  throw HttpError(404, fmt::format("the server has no response \"{}\"", shown(id, 80)), "response_id",
                  "response_not_found");
}

}  // namespace

void responses(const Context& context, const std::shared_ptr<Call>& call) {
  const auto request =
      std::make_shared<const ResponseRequest>(call->request().body, context.stored_responses);
  if (!request->servers.empty()) return run_tools(context, call, request);
  context.with_model(
      call, request->model, [&context, call, request](const std::shared_ptr<LoadedModel>& model) {
        Request one;
        one.options.sampling = read_sampling(request->fields, model->model);
        one.options.stop = read_stop(request->fields);
        one.options.max_tokens = request->max_tokens.value_or(model->capacity());
        one.options.top_logprobs = request->top_logprobs;
        translated([&] {
          hold_to(*model, request->question, one.options);
          one.prompt = prompt_of(*model, request->question);
        });
        const int64_t tokens = std::ssize(one.prompt);
        check_prompt_length(*model, context.options, tokens);
        one.recipe = model->recipe_for(request->extension);
        auto writer = response_writer(
            {call, request, model, one.recipe, one.options, tokens, &context.stored_responses});
        std::vector<Request> requests;
        requests.push_back(std::move(one));
        context.answers.start(call, model, std::move(requests), std::move(writer));
      });
}

void show_response(const Context& context, const std::shared_ptr<Call>& call, std::string_view id) {
  const std::string& query = call->request().query;
  if (query.find("stream=true") != std::string::npos) {
    throw HttpError(400, "stream: a stored response is given whole", "stream", "unsupported_value");
  }
  const std::shared_ptr<const StoredResponse> response = context.stored_responses.find(std::string(id));
  if (response == nullptr) no_response(id);
  call->respond(response->json);
}

void delete_response(const Context& context, const std::shared_ptr<Call>& call, std::string_view id) {
  if (!context.stored_responses.remove(std::string(id))) no_response(id);
  call->respond(dump({{"id", id}, {"object", "response"}, {"deleted", true}}));
}

}  // namespace verbatim::serve
