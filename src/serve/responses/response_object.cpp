#include "serve/responses/response_object.h"

#include "serve/ids.h"

namespace verbatim::serve {

Json begun_response(const ResponseAnswer& answer) {
  const ResponseRequest& request = *answer.request;
  const auto given = [&](std::string_view name, Json absent) {
    const Json* const value = request.fields.find(name);
    return value == nullptr ? std::move(absent) : *value;
  };
  const SamplingOptions& sampling = answer.options.sampling;
  Json text = given("text", Json::object());
  if (!text.contains("format") || text["format"].is_null()) text["format"] = {{"type", "text"}};
  return {{"id", new_id("resp_")},
          {"object", "response"},
          {"created_at", unix_time()},
          {"status", "in_progress"},
          {"background", false},
          {"error", nullptr},
          {"incomplete_details", nullptr},
          {"instructions", given("instructions", nullptr)},
          {"max_output_tokens", given("max_output_tokens", nullptr)},
          {"model", answer.model->name},
          {"output", Json::array()},
          {"parallel_tool_calls", request.question.parallel_tool_calls},
          {"previous_response_id", given("previous_response_id", nullptr)},
          {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
          {"store", request.store},
          {"temperature", sampling.temperature},
          {"text", std::move(text)},
          {"tool_choice", given("tool_choice", "auto")},
          {"tools", given("tools", Json::array())},
          {"top_logprobs", request.top_logprobs.value_or(0)},
          {"top_p", given("top_p", 1.0)},
          {"truncation", "disabled"},
          {"usage", nullptr},
          {"user", given("user", nullptr)},
          {"metadata", given("metadata", Json::object())}};
}

Message message_of_output(const Json& output) {
  Message message{.role = "assistant", .content = {}};
  for (const Json& item : output) {
    if (item["type"] == "function_call") {
      message.tool_calls.push_back({item["call_id"].get<std::string>(), item["name"].get<std::string>(),
                                    item["arguments"].get<std::string>()});
      continue;
    }
    if (item["type"] != "message") continue;  // what servers of tools did, which the message sums up
    for (const Json& part : item["content"]) message.content += part["text"].get_ref<const std::string&>();
  }
  return message;
}

void keep_response(const ResponseAnswer& answer, const Json& response) {
  if (!answer.request->store || answer.store == nullptr) return;
  StoredResponse stored{
      .id = response["id"].get<std::string>(), .json = dump(response), .messages = answer.request->messages};
  stored.messages.push_back(message_of_output(response["output"]));
  answer.store->add(std::move(stored));
}

}  // namespace verbatim::serve
