#include "serve/chat_prompt.h"
#include "serve/openai/chat_writers.h"
#include "serve/openai/endpoints.h"
#include "serve/sampling_fields.h"

namespace verbatim::serve {

void chat_completions(const Context& context, const std::shared_ptr<Call>& call) {
  const auto request = std::make_shared<const ChatRequest>(call->request().body);
  context.answers.check_count(request->choices);
  context.with_model(
      call, request->model, [&context, call, request](const std::shared_ptr<LoadedModel>& model) {
        GenerateOptions options;
        options.sampling = read_sampling(request->fields, model->model);
        options.stop = read_stop(request->fields);
        options.max_tokens = request->max_tokens.value_or(model->capacity());
        options.top_logprobs = request->top_logprobs;
        options.origins = request->extension.origins && request->stream;
        hold_to(*model, request->question, options);
        const std::vector<int32_t> prompt = prompt_of(*model, request->question);
        check_prompt_length(*model, context.options, std::ssize(prompt));
        const Recipe recipe = model->recipe_for(request->extension);
        std::vector<Request> requests;
        for (int64_t i = 0; i < request->choices; ++i) {
          Request& one = requests.emplace_back();
          one.prompt = prompt;
          one.options = options;
          one.options.sampling.seed += static_cast<uint64_t>(i);
          one.recipe = recipe;
        }
        context.answers.start(
            call, model, std::move(requests),
            chat_writer({call, request, model, recipe, std::move(options), std::ssize(prompt)}));
      });
}

}  // namespace verbatim::serve
