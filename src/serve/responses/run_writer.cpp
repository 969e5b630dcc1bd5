#include "serve/responses/run_writer.h"

#include "serve/ids.h"
#include "serve/responses/response_object.h"

namespace verbatim::serve {
namespace {

/// What a run failed by, as an answer without a stream has it.
HttpError error_of_run(const Call& call, const AgentAnswer& ended) {
  // Of the time of all answers and that of answers with tools the shorter one has ended it.
  if (call.cancelled()) return {503, "the answer was cut off: the server is ending"};
  if (ended.late) {
    return {504, "the answer was not complete within the time that this server allows"};
  }
  if (ended.too_long) return {400, ended.error, {}, "context_length_exceeded"};
  if (ended.no_tool) return {400, ended.error, "tool_choice", "invalid_value"};
  // As the same request would meet it again, it is not to be sent again.
  if (ended.limited) return {400, ended.error, {}, "limit_reached"};
  return {500, ended.error};
}

}  // namespace

RunWriter::RunWriter(ResponseAnswer answer, std::vector<RunTool> tools)
    : answer_(std::move(answer)),
      tools_(std::move(tools)),
      events_(answer_.call),
      response_(begun_response(answer_)) {}

void RunWriter::take(const AgentEvent& event) {
  if (answer_.call->cancelled() || !failure_.empty()) return;
  try {
    tell(event);
  } catch (const std::exception& exception) {  // the service's thread goes on, and end() says so
    failure_ = std::string("the server failed: ") + exception.what();
  }
}

void RunWriter::tell(const AgentEvent& event) {
  // A run that fails before it has asked the model for anything is answered with an error of its own.
  if (event.kind == "replied" || event.kind == "started" || event.kind == "task") begin();
  if (event.kind == "started" && open_.count(event.task) == 0) open_call(event);
  if (event.kind == "settled" && open_.count(event.task) != 0) close_call(event);
}

void RunWriter::end(const AgentAnswer& ended) {
  try {
    if (!failure_.empty()) {
      fail({500, failure_});
    } else if (answer_.call->cancelled() || !ended.error.empty()) {
      fail(error_of_run(*answer_.call, ended));
    } else {
      begin();
      write_message(ended.text);
      complete(ended);
    }
  } catch (const std::exception& exception) {
    fail({500, std::string("the server failed: ") + exception.what()});
  }
}

void RunWriter::begin() {
  if (std::exchange(begun_, true)) return;
  if (answer_.request->stream) events_.begin();
  send("response.created", {{"response", response_}});
  send("response.in_progress", {{"response", response_}});
  for (const ServerTools& server : answer_.request->servers) list_tools(server.label);
}

void RunWriter::list_tools(const std::string& label) {
  Json listed = Json::array();
  for (const RunTool& one : tools_) {
    if (one.label != label) continue;
    listed.push_back({{"name", one.tool.name},
                      {"description", one.tool.description},
                      {"input_schema", Json::parse(one.tool.parameters)},
                      {"annotations", nullptr}});
  }
  const size_t index = open_item({{"id", new_id("mcpl_")},
                                  {"type", "mcp_list_tools"},
                                  {"server_label", label},
                                  {"tools", Json::array()},
                                  {"error", nullptr}});
  send_of_item("response.mcp_list_tools.in_progress", index);
  send_of_item("response.mcp_list_tools.completed", index);
  response_["output"][index]["tools"] = std::move(listed);
  close_item(index);
}

void RunWriter::open_call(const AgentEvent& event) {
  const auto tool = std::find_if(tools_.begin(), tools_.end(),
                                 [&](const RunTool& one) { return one.tool.plan_name == event.tool; });
  if (tool == tools_.end()) return;
  const size_t index = open_item({{"id", new_id("mcp_")},
                                  {"type", "mcp_call"},
                                  {"status", "in_progress"},
                                  {"server_label", tool->label},
                                  {"name", tool->tool.name},
                                  {"arguments", ""},
                                  {"output", nullptr},
                                  {"error", nullptr},
                                  {"approval_request_id", nullptr}});
  open_[event.task] = index;
  send_of_item("response.mcp_call.in_progress", index);
  response_["output"][index]["arguments"] = event.text;
  send_of_item("response.mcp_call_arguments.delta", index, {{"delta", event.text}});
  send_of_item("response.mcp_call_arguments.done", index, {{"arguments", event.text}});
}

void RunWriter::close_call(const AgentEvent& event) {
  const auto found = open_.find(event.task);
  const size_t index = found->second;
  open_.erase(found);
  const bool done = event.state == "done";
  Json& item = response_["output"][index];
  item["status"] = done ? "completed" : "failed";
  item[done ? "output" : "error"] = event.text;
  send_of_item(done ? "response.mcp_call.completed" : "response.mcp_call.failed", index);
  close_item(index);
}

void RunWriter::write_message(const std::string& text) {
  const auto part = [](const std::string& words) {
    return Json{{"type", "output_text"},
                {"text", words},
                {"annotations", Json::array()},
                {"logprobs", Json::array()}};
  };
  const size_t index = open_item({{"id", new_id("msg_")},
                                  {"type", "message"},
                                  {"status", "in_progress"},
                                  {"role", "assistant"},
                                  {"content", Json::array()}});
  send_of_item("response.content_part.added", index, {{"content_index", 0}, {"part", part("")}});
  send_of_item("response.output_text.delta", index,
               {{"content_index", 0}, {"delta", text}, {"logprobs", Json::array()}});
  send_of_item("response.output_text.done", index,
               {{"content_index", 0}, {"text", text}, {"logprobs", Json::array()}});
  send_of_item("response.content_part.done", index, {{"content_index", 0}, {"part", part(text)}});
  response_["output"][index]["content"].push_back(part(text));
  response_["output"][index]["status"] = "completed";
  close_item(index);
}

void RunWriter::complete(const AgentAnswer& ended) {
  response_["status"] = "completed";
  response_["usage"] = {{"input_tokens", ended.prompt_tokens},
                        {"input_tokens_details", {{"cached_tokens", ended.cached_tokens}}},
                        {"output_tokens", ended.reply_tokens},
                        {"output_tokens_details", {{"reasoning_tokens", 0}}},
                        {"total_tokens", ended.prompt_tokens + ended.reply_tokens}};
  const Recipe& recipe = answer_.recipe;
  response_["verbatim"] = {{"recipe", recipe.name},
                           {"lossless", recipe.lossless()},
                           {"guarantee", recipe.guarantee()},
                           {"seed", static_cast<int64_t>(answer_.options.sampling.seed)},
                           {"rounds", ended.rounds},
                           {"requests", ended.requests},
                           {"calls", ended.calls},
                           {"structure_tokens", ended.structure_tokens},
                           {"seconds", ended.seconds}};
  keep_response(answer_, response_);
  if (!answer_.request->stream) {
    answer_.call->respond(dump(response_));
    return;
  }
  send("response.completed", {{"response", response_}});
  events_.end();
}

void RunWriter::fail(const HttpError& error) {
  if (!events_.begun()) {
    answer_.call->fail(error);
    return;
  }
  response_["status"] = "failed";
  response_["error"] = {{"code", "server_error"}, {"message", error.what()}};
  send("response.failed", {{"response", response_}});
  events_.end();
}

void RunWriter::send(std::string_view type, Json&& members) {
  if (!answer_.request->stream) return;
  Json event = {{"type", type}, {"sequence_number", sequence_++}};
  event.update(members);
  events_.send(dump(event), type);
}

size_t RunWriter::open_item(Json&& item) {
  response_["output"].push_back(std::move(item));
  const size_t index = response_["output"].size() - 1;
  send("response.output_item.added", {{"output_index", index}, {"item", response_["output"][index]}});
  return index;
}

void RunWriter::send_of_item(std::string_view type, size_t index, Json&& members) {
  Json all = {{"item_id", response_["output"][index]["id"]}, {"output_index", index}};
  all.update(members);
  send(type, std::move(all));
}

void RunWriter::close_item(size_t index) {
  send("response.output_item.done", {{"output_index", index}, {"item", response_["output"][index]}});
}

}  // namespace verbatim::serve
