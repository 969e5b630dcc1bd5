#include "agent/record/run_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "verbatim/error.h"

namespace verbatim::agent {

namespace {

int small_of(const Json& json) {
  return static_cast<int>(std::clamp<int64_t>(whole_of(json), -1'000'000, 1'000'000));
}

}  // namespace

int64_t whole_of(const Json& json) {
  constexpr int64_t kMost = int64_t{1} << 53;
  if (!json.is_number_integer() || json > kMost || json < -kMost) {
    throw Error(ErrorKind::kBadInput,
                fmt::format("the recording cannot be replayed: it has {}",
                            json.is_number() ? "a number out of its range" : "no number where one belongs"));
  }
  return json.get<int64_t>();
}

Json json_of(const ModelReply& reply) {
  return {valid_utf8(reply.error), reply.cut,          reply.prompt_tokens, reply.reply_tokens,
          reply.structure_tokens,  reply.cached_tokens};
}

ModelReply reply_of(const Json& json) {
  return {.error = json.at(0).get<std::string>(),
          .cut = json.at(1).get<bool>(),
          .prompt_tokens = whole_of(json.at(2)),
          .cached_tokens = json.size() > 5 ? whole_of(json.at(5)) : 0,  // older recordings have none
          .reply_tokens = whole_of(json.at(3)),
          .structure_tokens = whole_of(json.at(4))};
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
  options.strategy = static_cast<RunStrategy>(std::clamp(small_of(json.at("strategy")), 0, 3));
  options.examples = json.at("examples").get<std::string>();
  options.streamed = json.at("streamed").get<bool>();
  options.shared_prompt = json.at("shared_prompt").get<bool>();
  options.max_rounds = whole_of(json.at("max_rounds"));
  options.max_corrections = whole_of(json.at("max_corrections"));
  options.max_tokens = whole_of(json.at("max_tokens"));
  options.max_reply_tokens = whole_of(json.at("max_reply_tokens"));
  options.max_time = Duration(whole_of(json.at("max_time")));
  options.executor.concurrency = small_of(json.at("concurrency"));
  options.executor.stragglers = Duration(whole_of(json.at("stragglers")));
  options.executor.cancel_grace = Duration(whole_of(json.at("cancel_grace")));
  options.executor.calls = whole_of(json.at("calls"));
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
  entry.policy = static_cast<Policy>(std::clamp(small_of(json.at("policy")), 0, 2));
  entry.idempotent = json.at("idempotent").get<bool>();
  const Json& limits = json.at("limits");
  entry.limits = {.time = Duration(whole_of(limits.at(0))),
                  .retries = small_of(limits.at(1)),
                  .back_off = Duration(whole_of(limits.at(2))),
                  .output_bytes = static_cast<size_t>(whole_of(limits.at(3))),
                  .concurrency = small_of(limits.at(4)),
                  .hedge_after = Duration(whole_of(limits.at(5)))};
  return entry;
}

}  // namespace verbatim::agent
