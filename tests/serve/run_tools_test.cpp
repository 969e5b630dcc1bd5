#ifdef VERBATIM_WITH_AGENT

#include <array>
#include <fstream>

#include "agent/scripted_server.h"
#include "serve/service_support.h"
#include "support/eventually.h"

namespace verbatim::serve {
namespace run_tools_test {
namespace {

using test::ask;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The log of the servers of tools, which test::kScriptedServer writes.
const test::TemporaryFolder& folder() {
  static const test::TemporaryFolder all;
  return all;
}

/// Servers of tools that are scripts: `free` may be called, `asked` wants somebody's consent, and `half` lets
/// nobody call one of its tools.
std::shared_ptr<AgentService> tools(int64_t max_questions = 16,
                                    std::chrono::milliseconds max_time = std::chrono::seconds(300)) {
  folder().write("server.sh", test::kScriptedServer);
  const auto server = [](const Json& settings, const Json& of_tools) {
    return Json{{"command", "sh"},
                {"args", {(folder().path() / "server.sh").string()}},
                {"env", {{"LOG", (folder().path() / "log").string()}}},
                {"settings", settings},
                {"tools", of_tools}};
  };
  // The script takes one call after the other.
  const Json allow = {{"policy", "allow"}, {"concurrency", 1}};
  const Json ask_first = {{"concurrency", 1}};
  const Json none = Json::object();
  folder().write("servers.json", dump({{"mcpServers",
                                        {{"asked", server(ask_first, none)},
                                         {"free", server(allow, none)},
                                         {"half", server(allow, {{"second", {{"policy", "deny"}}}})}}}}));
  return start_agent_service(
      {.servers = folder().path() / "servers.json", .max_questions = max_questions, .max_time = max_time});
}

/// A service with the whole context of the default model, for the tools' descriptions are part of a prompt.
ServerOptions options_with_tools(int64_t max_questions = 16) {
  ServerOptions options = test::server_options();
  options.engine.capacity = 0;
  options.tools = tools(max_questions);
  return options;
}

Service& service() {
  static Service with_tools(options_with_tools(), [](std::string_view, const std::string&) {});
  return with_tools;
}

/// A request that makes one or two calls of a tool, whatever the model thinks of it.
Json wanted(const char* label = "free", const char* tool = "echo") {
  return {{"input", "What does it say?"},
          {"temperature", 0},
          {"tool_choice", "required"},
          {"max_tool_calls", 2},
          {"tools", {{{"type", "mcp"}, {"server_label", label}, {"allowed_tools", {tool}}}}}};
}

Json streamed(Json request) {
  request["stream"] = true;
  return request;
}

std::vector<Json> items_of(const Json& response, const char* type) {
  std::vector<Json> items;
  for (const Json& item : response["output"]) {
    if (item["type"] == type) items.push_back(item);
  }
  return items;
}

/// A response without what differs from request to request: what was remembered is up to those before.
Json comparable(Json response) {
  response["usage"].erase("input_tokens_details");
  for (const char* const field : {"id", "created_at", "verbatim"}) response.erase(field);
  for (Json& item : response["output"]) item.erase("id");
  return response;
}

Json error_of(const Json& request) {
  const auto answer = ask(service(), "/v1/responses", request);
  EXPECT_EQ(answer->status(), 400) << answer->text();
  return answer->json()["error"];
}

TEST(RunTools, CallsToolsAndAnswers) {
  const auto answer = ask(service(), "/v1/responses", wanted());
  ASSERT_EQ(answer->status(), 200) << answer->text();
  const Json response = answer->json();
  EXPECT_EQ(response["status"], "completed");
  const std::vector<Json> lists = items_of(response, "mcp_list_tools");
  ASSERT_EQ(lists.size(), 1u);
  ASSERT_EQ(lists[0]["tools"].size(), 1u);
  EXPECT_EQ(lists[0]["server_label"], "free");
  EXPECT_EQ(lists[0]["tools"][0]["name"], "echo");
  EXPECT_EQ(lists[0]["tools"][0]["input_schema"]["required"][0], "s");
  const std::vector<Json> calls = items_of(response, "mcp_call");
  ASSERT_GE(calls.size(), 1u);
  ASSERT_LE(calls.size(), 2u);
  for (const Json& call : calls) {
    EXPECT_EQ(call["status"], "completed");
    EXPECT_EQ(call["server_label"], "free");
    EXPECT_EQ(call["name"], "echo");
    EXPECT_TRUE(Json::parse(call["arguments"].get<std::string>())["s"].is_string());
    EXPECT_EQ(call["output"], "you said it\n(image, image/png, 3 bytes)\ninside");
    EXPECT_EQ(call["error"], nullptr);
  }
  EXPECT_EQ(response["output"].back()["type"], "message");
  EXPECT_FALSE(response["output"].back()["content"][0]["text"].get<std::string>().empty());
  EXPECT_EQ(response["verbatim"]["calls"], calls.size());
  EXPECT_GT(response["usage"]["output_tokens"], 0);
}

/// The value of a metric of the default model, 0 if it is not there.
double metric(const std::string& name) {
  const std::string text = service().metrics();
  const std::string line = "\n" + name + "{model=\"target\"} ";
  const size_t at = text.find(line);
  return at == std::string::npos ? 0 : std::stod(text.substr(at + line.size()));
}

TEST(RunTools, CountTheTokensOfAllTheirRequests) {
  const auto values = [] {
    return std::array{metric("verbatim_prompt_tokens_total"), metric("verbatim_cached_prompt_tokens_total"),
                      metric("verbatim_generated_tokens_total"),
                      metric("verbatim_time_to_first_token_seconds_count")};
  };
  const auto before = values();
  const Json response = ask(service(), "/v1/responses", wanted())->json();
  const auto after = values();
  const Json& usage = response["usage"];
  EXPECT_GT(usage["input_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(after[0] - before[0], usage["input_tokens"]);
  EXPECT_EQ(after[1] - before[1], usage["input_tokens_details"]["cached_tokens"]);
  EXPECT_EQ(after[2] - before[2], usage["output_tokens"]);
  EXPECT_EQ(after[3] - before[3], response["verbatim"]["requests"]);
}

TEST(RunTools, WholeAndStreamedAnswersAreTheSame) {
  const Json whole = ask(service(), "/v1/responses", wanted())->json();
  const auto stream = ask(service(), "/v1/responses", streamed(wanted()));
  ASSERT_TRUE(stream->streamed()) << stream->text();
  EXPECT_EQ(comparable(whole), comparable(stream->events().back()["response"]));
}

TEST(RunTools, StreamTheEventsOfEachItemInTheirOrder) {
  const std::vector<Json> events = ask(service(), "/v1/responses", streamed(wanted()))->events();
  ASSERT_GT(events.size(), 3u);
  EXPECT_EQ(events[0]["type"], "response.created");
  EXPECT_EQ(events[1]["type"], "response.in_progress");
  EXPECT_EQ(events.back()["type"], "response.completed");
  const Json output = events.back()["response"]["output"];
  std::map<size_t, std::vector<std::string>> types;  // by the place of the item
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i]["sequence_number"], i);
    if (!events[i].contains("output_index")) continue;
    const auto place = events[i]["output_index"].get<size_t>();
    types[place].push_back(events[i]["type"]);
    if (events[i].contains("item_id")) {
      EXPECT_EQ(events[i]["item_id"], output[place]["id"]);
    }
    if (events[i]["type"] == "response.output_item.done") {
      EXPECT_EQ(events[i]["item"], output[place]);
    }
  }
  ASSERT_EQ(types.size(), output.size());
  EXPECT_THAT(types[0], ElementsAre("response.output_item.added", "response.mcp_list_tools.in_progress",
                                    "response.mcp_list_tools.completed", "response.output_item.done"));
  for (size_t place = 1; place + 1 < output.size(); ++place) {
    EXPECT_THAT(types[place],
                ElementsAre("response.output_item.added", "response.mcp_call.in_progress",
                            "response.mcp_call_arguments.delta", "response.mcp_call_arguments.done",
                            "response.mcp_call.completed", "response.output_item.done"));
  }
  EXPECT_THAT(
      types[output.size() - 1],
      ElementsAre("response.output_item.added", "response.content_part.added", "response.output_text.delta",
                  "response.output_text.done", "response.content_part.done", "response.output_item.done"));
}

TEST(RunTools, TellOfCallsThatFail) {
  const auto answer = ask(service(), "/v1/responses", streamed(wanted("free", "lies")));
  const Json response = answer->events().back()["response"];
  EXPECT_EQ(response["status"], "completed") << response;
  for (const Json& call : items_of(response, "mcp_call")) {
    EXPECT_EQ(call["status"], "failed");
    EXPECT_EQ(call["output"], nullptr);
    EXPECT_THAT(call["error"].get<std::string>(), HasSubstr("does not fit the schema"));
  }
  EXPECT_THAT(answer->text(), HasSubstr("event: response.mcp_call.failed"));
}

TEST(RunTools, ContinueAConversation) {
  Json request = wanted();
  request["instructions"] = "Be brief.";
  const Json first = ask(service(), "/v1/responses", request)->json();
  request["previous_response_id"] = first["id"];
  request["input"] = "And now?";
  const auto second = ask(service(), "/v1/responses", request);
  ASSERT_EQ(second->status(), 200) << second->text();
  EXPECT_GT(second->json()["usage"]["input_tokens"], first["usage"]["input_tokens"]);
  // As clients do that send all back themselves.
  Json items = Json::array({{{"role", "user"}, {"content", request["input"]}}});
  for (const Json& item : first["output"]) items.push_back(item);
  items.push_back({{"role", "user"}, {"content", "And now?"}});
  EXPECT_EQ(ask(service(), "/v1/responses", {{"input", items}, {"max_output_tokens", 4}})->status(), 200);
}

TEST(RunTools, AreThoseOfTheServersThatAreConfiguredAlone) {
  const auto with = [](const Json& more) {
    Json request = wanted();
    request["tools"][0].update(more);
    return error_of(request);
  };
  EXPECT_EQ(with({{"server_label", "other"}})["param"], "tools[0].server_label");
  EXPECT_EQ(with({{"server_url", "http://localhost/mcp"}})["param"], "tools[0].server_url");
  EXPECT_EQ(with({{"authorization", "x"}})["param"], "tools[0].authorization");
  EXPECT_EQ(with({{"headers", {{"A", "b"}}}})["param"], "tools[0].headers");
  EXPECT_EQ(with({{"allowed_tools", {"echo", "other"}}})["param"], "tools[0].allowed_tools");
  EXPECT_EQ(with({{"allowed_tools", "echo"}})["param"], "tools[0].allowed_tools");
  EXPECT_EQ(with({{"allowed_tools", {{"read_only", true}}}})["param"], "tools[0].allowed_tools.read_only");
  Json twice = wanted();
  twice["tools"].push_back(twice["tools"][0]);
  EXPECT_EQ(error_of(twice)["param"], "tools[1].server_label");
}

TEST(RunTools, AreCalledOnlyWhereNobodyHasToBeAsked) {
  const auto with = [](const char* label, const char* tool, const Json& approval) {
    Json request = wanted(label, tool);
    if (!approval.is_null()) request["tools"][0]["require_approval"] = approval;
    return request;
  };
  EXPECT_THAT(error_of(with("asked", "echo", nullptr))["message"].get<std::string>(),
              HasSubstr("tools[0].require_approval must be \"never\" for \"echo\""));
  EXPECT_EQ(error_of(with("free", "echo", "always"))["param"], "tools[0].require_approval");
  EXPECT_EQ(error_of(with("asked", "echo", {{"always", {{"tool_names", {"echo"}}}}}))["param"],
            "tools[0].require_approval.always");
  EXPECT_EQ(error_of(with("asked", "echo", {{"never", {{"tool_names", {"second"}}}}}))["param"],
            "tools[0].require_approval");
  for (const Json& approval : {Json("never"), Json{{"never", {{"tool_names", {"echo"}}}}}}) {
    const auto answer = ask(service(), "/v1/responses", with("asked", "echo", approval));
    EXPECT_EQ(answer->status(), 200) << answer->text();
    EXPECT_FALSE(items_of(answer->json(), "mcp_call").empty());
  }
  // What is denied is not there, whatever a client agrees to.
  EXPECT_EQ(error_of(with("half", "second", "never"))["param"], "tools[0].allowed_tools");
}

TEST(RunTools, RefuseWhatPlansCannotBeWrittenWith) {
  const auto with = [](const char* name, const Json& value) {
    Json request = wanted();
    request[name] = value;
    return error_of(request)["param"];
  };
  EXPECT_EQ(with("tool_choice", "none"), "tool_choice");
  EXPECT_EQ(with("text", {{"format", {{"type", "json_object"}}}}), "text");
  EXPECT_EQ(with("stop", "x"), "stop");
  EXPECT_EQ(with("top_p", 0.5), "top_p");
  EXPECT_EQ(with("frequency_penalty", 1), "frequency_penalty");
  EXPECT_EQ(with("input", {{{"role", "assistant"}, {"content", "x"}}}), "input");
  EXPECT_EQ(with("input", {{{"role", "assistant"}, {"content", "x"}}, {{"role", "user"}, {"content", "y"}}}),
            "input");
  Json mixed = wanted();
  mixed["tools"].push_back({{"type", "function"}, {"name", "f"}});
  EXPECT_EQ(error_of(mixed)["param"], "tools");
  EXPECT_EQ(error_of({{"input", "x"}, {"max_tool_calls", 3}})["param"], "max_tool_calls");
  Json large = wanted();
  large["input"] = std::string(9000, 'x') + " " + std::string(9000, 'y');
  EXPECT_EQ(error_of(large)["code"], "context_length_exceeded");
}

TEST(RunTools, TakeWhatOneSideSaysInSeveralMessagesAsOneTurn) {
  Json request = wanted();
  request["input"] = {
      {{"role", "user"}, {"content", "Listen."}},   {{"role", "user"}, {"content", "What does it say?"}},
      {{"role", "assistant"}, {"content", "It?"}},  {{"role", "assistant"}, {"content", "Who?"}},
      {{"role", "user"}, {"content", "The tool."}}, {{"role", "user"}, {"content", "What does it say?"}}};
  const auto answer = ask(service(), "/v1/responses", request);
  EXPECT_EQ(answer->status(), 200) << answer->text();
}

TEST(RunTools, RefuseToCallAToolThatIsNotThere) {
  Json request = wanted();
  request["tools"][0]["allowed_tools"] = Json::array();
  EXPECT_EQ(error_of(request)["param"], "tool_choice");
}

TEST(RunTools, TellALimitThatWasMetAsNoFaultOfTheServer) {
  Json request = wanted();
  request["max_output_tokens"] = 1;
  EXPECT_EQ(error_of(request)["code"], "limit_reached");
}

TEST(RunTools, KeepToTheContextThatTheServerGivesTheModel) {
  ServerOptions options = options_with_tools();
  options.engine.capacity = 64;  // less than the tools' descriptions take
  Service small(options, [](std::string_view, const std::string&) {});
  const auto answer = ask(small, "/v1/responses", wanted());
  EXPECT_EQ(answer->status(), 400);
  EXPECT_EQ(answer->json()["error"]["code"], "context_length_exceeded");
}

TEST(RunTools, KeepToTheLimitOfPromptsWithTheErrorOfOtherRequests) {
  ServerOptions options = options_with_tools();
  options.max_prompt_tokens = 5;
  Service small(options, [](std::string_view, const std::string&) {});
  const auto pattern = ::testing::MatchesRegex("the prompt has [0-9]+ tokens; this server takes 5 at most");
  for (const Json& request : {wanted(), Json{{"input", "a b c d e f g h i j k l"}}}) {
    const auto answer = ask(small, "/v1/responses", request);
    EXPECT_EQ(answer->status(), 400);
    const Json error = answer->json()["error"];
    EXPECT_EQ(error["code"], "context_length_exceeded");
    EXPECT_EQ(error["param"], nullptr);
    EXPECT_THAT(error["message"].get<std::string>(), pattern);
  }
}

TEST(RunTools, EndWithTheShorterOfTheirTimeAndThatOfAllAnswers) {
  ServerOptions options = options_with_tools();
  options.tools = tools(16, std::chrono::milliseconds(100));
  Service of_tools(options, [](std::string_view, const std::string&) {});
  const auto own = ask(of_tools, "/v1/responses", wanted("free", "hangs"));
  EXPECT_EQ(own->status(), 400);
  EXPECT_EQ(own->json()["error"]["code"], "limit_reached");
  EXPECT_THAT(own->json()["error"]["message"].get<std::string>(), HasSubstr("took more than 0.1 s"));

  options.tools = tools(16, std::chrono::milliseconds(1000));
  options.request_timeout = std::chrono::seconds(1);
  Service of_all(options, [](std::string_view, const std::string&) {});
  EXPECT_EQ(ask(of_all, "/v1/responses", wanted("free", "hangs"))->status(), 504);  // the same: that of all
}

TEST(RunTools, AreRefusedWhereTheyAreNotSwitchedOn) {
  ServerOptions options = test::server_options();
  options.tools = nullptr;
  Service without(options, [](std::string_view, const std::string&) {});
  const auto answer = ask(without, "/v1/responses", wanted());
  EXPECT_EQ(answer->status(), 400);
  EXPECT_EQ(answer->json()["error"]["param"], "tools[0].type");
}

/// How often a line is in the log of the servers.
int64_t logged(const std::string& line) {
  std::ifstream log(folder().path() / "log");
  int64_t count = 0;
  for (std::string each; std::getline(log, each);) count += each == line ? 1 : 0;
  return count;
}

TEST(RunTools, AreCalledOffWhenTheClientLeaves) {
  const int64_t before = logged("cancelled");
  const auto exchange =
      test::send(service(), "POST", "/v1/responses", dump(streamed(wanted("free", "hangs"))));
  ASSERT_TRUE(exchange->wait("response.mcp_call.in_progress"));
  exchange->leave();
  ASSERT_TRUE(exchange->wait());
  EXPECT_TRUE(test::eventually([&] { return logged("cancelled") > before; }));
}

TEST(RunTools, AreAnsweredAsManyAtATimeAsTheLimitSays) {
  auto limited =
      std::make_unique<Service>(options_with_tools(1), [](std::string_view, const std::string&) {});
  const auto first = test::send(*limited, "POST", "/v1/responses", dump(streamed(wanted("free", "hangs"))));
  ASSERT_TRUE(first->wait("response.mcp_call.in_progress"));
  EXPECT_EQ(ask(*limited, "/v1/responses", wanted())->status(), 429);
  // The others wait for no tool.
  EXPECT_EQ(ask(*limited, "/v1/responses", {{"input", "a"}, {"max_output_tokens", 2}})->status(), 200);
  limited.reset();  // which calls off what hangs
  ASSERT_TRUE(first->wait());
  EXPECT_EQ(first->events().back()["type"], "response.failed");
}

}  // namespace
}  // namespace run_tools_test
}  // namespace verbatim::serve

#endif
