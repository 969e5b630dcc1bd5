#include "agent/record/run_json.h"

namespace verbatim::agent {

Json json_of(const ModelReply& reply) {
  return {valid_utf8(reply.error), reply.cut,          reply.prompt_tokens, reply.reply_tokens,
          reply.structure_tokens,  reply.cached_tokens};
}

ModelReply reply_of(const Json& json) {
  return {.error = json.at(0).get<std::string>(),
          .cut = json.at(1).get<bool>(),
          .prompt_tokens = json.at(2).get<int64_t>(),
          .cached_tokens = json.size() > 5 ? json.at(5).get<int64_t>() : 0,  // older recordings have none
          .reply_tokens = json.at(3).get<int64_t>(),
          .structure_tokens = json.at(4).get<int64_t>()};
}

Json json_of(const ToolResult& result) {
  // Through its text, which has no bytes that are no UTF-8.
  return Json::array({result.done, parse_json(dump(result.value)).value_or(nullptr), valid_utf8(result.error),
                      result.again});
}

ToolResult result_of(const Json& json) {
  return {.done = json.at(0).get<bool>(),
          .value = json.at(1),
          .error = json.at(2).get<std::string>(),
          .again = json.at(3).get<bool>()};
}

Json json_of(const RunOptions& options) {
  return {{"strategy", static_cast<int>(options.strategy)},
          {"examples", options.examples},
          {"streamed", options.streamed},
          {"shared_prompt", options.shared_prompt},
          {"max_rounds", options.max_rounds},
          {"max_corrections", options.max_corrections},
          {"max_tokens", options.max_tokens},
          {"max_reply_tokens", options.max_reply_tokens},
          {"max_time", options.max_time.count()},
          {"concurrency", options.executor.concurrency},
          {"stragglers", options.executor.stragglers.count()},
          {"cancel_grace", options.executor.cancel_grace.count()},
          {"calls", options.executor.calls}};
}

RunOptions options_of(const Json& json) {
  RunOptions options;
  options.strategy = static_cast<RunStrategy>(std::clamp(json.at("strategy").get<int>(), 0, 3));
  options.examples = json.at("examples").get<std::string>();
  options.streamed = json.at("streamed").get<bool>();
  options.shared_prompt = json.at("shared_prompt").get<bool>();
  options.max_rounds = json.at("max_rounds").get<int64_t>();
  options.max_corrections = json.at("max_corrections").get<int64_t>();
  options.max_tokens = json.at("max_tokens").get<int64_t>();
  options.max_reply_tokens = json.at("max_reply_tokens").get<int64_t>();
  options.max_time = Duration(json.at("max_time").get<int64_t>());
  options.executor.concurrency = json.at("concurrency").get<int>();
  options.executor.stragglers = Duration(json.at("stragglers").get<int64_t>());
  options.executor.cancel_grace = Duration(json.at("cancel_grace").get<int64_t>());
  options.executor.calls = json.at("calls").get<int64_t>();
  return options;
}

Json json_of(const ToolEntry& entry) {
  const ToolDeclaration& declaration = entry.tool->declaration();
  const ToolLimits& limits = entry.limits;
  return {{"name", declaration.name},
          {"description", valid_utf8(declaration.description)},
          {"parameters", declaration.parameters},
          {"policy", static_cast<int>(entry.policy)},
          {"idempotent", entry.idempotent},
          {"limits", Json::array({limits.time.count(), limits.retries, limits.back_off.count(),
                                  limits.output_bytes, limits.concurrency, limits.hedge_after.count()})}};
}

ToolEntry entry_of(const Json& json, ToolDeclaration& declaration) {
  declaration.name = json.at("name").get<std::string>();
  declaration.description = json.at("description").get<std::string>();
  declaration.parameters = json.at("parameters");
  ToolEntry entry;
  entry.policy = static_cast<Policy>(std::clamp(json.at("policy").get<int>(), 0, 2));
  entry.idempotent = json.at("idempotent").get<bool>();
  const Json& limits = json.at("limits");
  entry.limits = {.time = Duration(limits.at(0).get<int64_t>()),
                  .retries = limits.at(1).get<int>(),
                  .back_off = Duration(limits.at(2).get<int64_t>()),
                  .output_bytes = limits.at(3).get<size_t>(),
                  .concurrency = limits.at(4).get<int>(),
                  .hedge_after = Duration(limits.at(5).get<int64_t>())};
  return entry;
}

}  // namespace verbatim::agent
