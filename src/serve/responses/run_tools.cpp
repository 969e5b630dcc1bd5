#include "serve/responses/run_tools.h"

#include "serve/responses/run_writer.h"
#include "serve/sampling_fields.h"

namespace verbatim::serve {
namespace {

/// The question of a request: its last message, after the others. What one side says in several messages is
/// one turn.
AgentQuestion question_of(const ResponseRequest& request, const std::vector<RunTool>& tools) {
  AgentQuestion question;
  for (const Message& message : request.question.messages) {
    if (message.role == "system") {
      question.instructions += (question.instructions.empty() ? "" : "\n\n") + message.content;
    } else if (!question.earlier.empty() && question.earlier.back().role == message.role) {
      question.earlier.back().text += "\n\n" + message.content;
    } else {
      question.earlier.push_back({.role = message.role, .text = message.content});
    }
  }
  question.text = std::move(question.earlier.back().text);
  question.earlier.pop_back();
  for (const RunTool& one : tools) question.tools.push_back(one.tool.plan_name);
  question.must_call = request.question.tool_choice.kind == ToolChoice::Kind::kRequired;
  question.one_call_at_a_time = !request.question.parallel_tool_calls;
  question.max_reply_tokens = request.max_tokens.value_or(0);
  question.max_calls = request.fields.integer("max_tool_calls").value_or(0);
  return question;
}

}  // namespace

void run_tools(const Context& context, const std::shared_ptr<Call>& call,
               const std::shared_ptr<const ResponseRequest>& request) {
  const std::shared_ptr<AgentService> service = context.options.tools;
  std::vector<RunTool> tools = chosen_tools(request->servers, service.get());
  if (tools.empty() && request->question.tool_choice.kind == ToolChoice::Kind::kRequired) {
    throw HttpError(400, "tool_choice must not be \"required\" where no tool may be called", "tool_choice",
                    "invalid_value");
  }
  context.with_model(
      call, request->model,
      [&context, call, request, service,
       tools = std::move(tools)](const std::shared_ptr<LoadedModel>& model) {
        ResponseAnswer answer{.call = call,
                              .request = request,
                              .model = model,
                              .recipe = model->recipe_for(request->extension),
                              .options = {},
                              .store = &context.stored_responses};
        answer.options.sampling = read_sampling(request->fields, model->model);
        AgentQuestion question = question_of(*request, tools);
        question.model = &model->model;
        question.engine = &model->engine;
        question.recipe = answer.recipe;
        question.owner = model;
        question.context = model->capacity();
        question.max_prompt_tokens = context.options.max_prompt_tokens;
        question.temperature = answer.options.sampling.temperature;
        question.seed = answer.options.sampling.seed;
        question.max_time = std::chrono::duration_cast<std::chrono::milliseconds>(
            call->deadline() - std::chrono::steady_clock::now());
        const bool plain = question.recipe.plain();
        const std::shared_ptr<ModelCounts> counts = model->counts;
        const auto writer = std::make_shared<RunWriter>(std::move(answer), tools);
        const int64_t number = service->start(
            std::move(question),
            {.event = [writer](const AgentEvent& event) { writer->take(event); },
             .ended = [writer](const AgentAnswer& ended) { writer->end(ended); },
             .tokens = [counts](int64_t count, bool first,
                                double seconds) { counts->took_tokens(count, first, seconds); },
             .generated = [counts, plain](
                              const GenerateResult& result,
                              int64_t prompt_tokens) { counts->ended(result, prompt_tokens, plain); }});
        if (number == 0)
          throw HttpError(429, "too many answers with tools are under way: try again later", {},
                          "queue_full");
        // The call ends on the service's thread, which must not be the last to let go of the
        // service.
        call->on_cancel([weak = std::weak_ptr<AgentService>(service), number] {
          if (const std::shared_ptr<AgentService> own = weak.lock()) own->cancel(number);
        });
      });
}

}  // namespace verbatim::serve
