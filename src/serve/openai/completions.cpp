#include "serve/chat_prompt.h"
#include "serve/openai/completion_writers.h"
#include "serve/openai/endpoints.h"
#include "serve/sampling_fields.h"

namespace verbatim::serve {

namespace {

using SharedRequest = std::shared_ptr<const CompletionRequest>;

CompletionPrompt read_prompt(const CompletionRequest& request, const LoadedModel& model,
                             const ServerOptions& options, const Prompt& prompt) {
  CompletionPrompt result;
  const auto* const text = std::get_if<std::string>(&prompt);
  result.tokens = request.suffix ? fill_in_prompt(model.model, *text, *request.suffix)
                                 : tokens_of(model.model, prompt, "prompt");
  check_prompt_length(model, options, std::ssize(result.tokens));
  if (request.echo) result.text = text != nullptr ? *text : model.model.decode(result.tokens);
  return result;
}

/// The log-probabilities of the tokens that a request gave, as the recipe reads the model.
void score_prompt(const CompletionAnswer& answer, const ServerOptions& options, bool given_as_text,
                  CompletionPrompt& prompt) {
  const LoadedModel& model = *answer.model;
  if (prompt.tokens.size() > 1) {
    prompt.scored = score(model.model, prompt.tokens,
                          {.top_logprobs = *answer.request->top_logprobs,
                           .reading = answer.recipe.reading,
                           .cache = answer.recipe.cache,
                           .threads = options.engine.threads,
                           .progress = [&](double) { check_under_way(*answer.call); }});
  }
  // The beginning of the sequence is not the request's.
  prompt.first_known = given_as_text && prompt.tokens.front() == model.model.bos_token();
  if (!prompt.first_known) {
    prompt.scored.insert(prompt.scored.begin(), ScoredToken{.token = prompt.tokens.front()});
  }
}

void start(const Context& context, CompletionAnswer answer) {
  std::vector<Request> requests;
  for (const CompletionPrompt& prompt : answer.prompts) {
    for (int64_t i = 0; i < answer.request->choices; ++i) {
      Request& one = requests.emplace_back();
      one.prompt = prompt.tokens;
      one.options = answer.options;
      one.options.sampling.seed += static_cast<uint64_t>(i);
      one.recipe = answer.recipe;
    }
  }
  const std::shared_ptr<Call> call = answer.call;
  const std::shared_ptr<LoadedModel> model = answer.model;
  context.answers.start(call, model, std::move(requests), completion_writer(std::move(answer)));
}

/// Scores the prompts from one on, each in its turn, and starts the answer.
void score_next(const Context& context, const std::shared_ptr<CompletionAnswer>& answer, size_t index) {
  if (index == answer->prompts.size()) {
    start(context, std::move(*answer));
    return;
  }
  const bool text = std::holds_alternative<std::string>(answer->request->prompts[index]);
  score_prompt(*answer, context.options, text, answer->prompts[index]);
  context.go_on_computing(answer->call,
                          [&context, answer, index] { score_next(context, answer, index + 1); });
}

}  // namespace

void completions(const Context& context, const std::shared_ptr<Call>& call) {
  const auto request = std::make_shared<const CompletionRequest>(call->request().body);
  context.answers.check_count(std::ssize(request->prompts) * request->choices);
  context.with_model(call, request->model,
                     [&context, call, request](const std::shared_ptr<LoadedModel>& model) {
                       const auto answer = std::make_shared<CompletionAnswer>();
                       answer->call = call;
                       answer->request = request;
                       answer->model = model;
                       answer->recipe = model->recipe_for(request->extension);
                       GenerateOptions& options = answer->options;
                       options.sampling = read_sampling(request->fields, model->model);
                       options.stop = read_stop(request->fields);
                       options.max_tokens = request->max_tokens;
                       options.top_logprobs = request->top_logprobs;
                       options.origins = request->extension.origins && request->stream;
                       if (request->suffix) options.stop_tokens = fill_in_ends(model->model);
                       for (const Prompt& each : request->prompts) {
                         answer->prompts.push_back(read_prompt(*request, *model, context.options, each));
                       }
                       if (!request->echo || !request->top_logprobs) {
                         start(context, std::move(*answer));
                         return;
                       }
                       context.compute(call, [&context, answer] { score_next(context, answer, 0); });
                     });
}

}  // namespace verbatim::serve
