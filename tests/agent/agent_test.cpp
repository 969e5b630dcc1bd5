#include "verbatim/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "agent/json.h"
#include "agent/small_server.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using agent::Json;
using test::SmallServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A model behind HTTP that says the given replies one after the other.
class Asking : public ::testing::Test {
 protected:
  Asking()
      : server_([this](const std::string&, const std::string& body, const auto& send) {
          requests_.push_back(Json::parse(body));
          std::string events;
          const std::string reply =
              requests_.size() <= replies_.size() ? replies_[requests_.size() - 1] : "none";
          for (size_t at = 0; at < reply.size(); at += 7) {
            events +=
                "data: " + agent::dump({{"choices", {{{"delta", {{"content", reply.substr(at, 7)}}}}}}}) +
                "\n\n";
          }
          events +=
              "data: "
              "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":100,"
              "\"completion_tokens\":9}}\n\n"
              "data: [DONE]\n\n";
          send(SmallServer::answer(200, "text/event-stream", events));
        }) {
    folder_.write("corpus.jsonl",
                  "{\"title\": \"Ann\", \"text\": \"Ann was born in 1950.\"}\n{\"title\": \"Bob\", \"text\": "
                  "\"Bob was born in 1947.\"}\n");
    folder_.write("tools.json", R"({"tools": [
      {"type": "function", "function": {"name": "year", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}},
       "command": ["sh", "-c", "printf %s \"$1\" | grep -o '[0-9]*' | tail -1", "sh", "{text}"], "settings": {"policy": "allow", "idempotent": true}},
      {"function": {"name": "wipe"}, "command": ["sh", "-c", "echo wiped"]},
      {"function": {"name": "never"}, "command": ["sleep", "100"], "settings": {"policy": "allow", "seconds": 60}}]})");
    options_.endpoint = server_.url("/v1");
    options_.tools = folder_.path() / "tools.json";
    options_.corpus = folder_.path() / "corpus.jsonl";
  }

  AgentAnswer ask(std::vector<std::string> replies) {
    replies_ = std::move(replies);
    Agent agent(options_);
    return agent.ask(
        "Who is older?", [this](const AgentEvent& event) { events_.push_back(event); }, record_);
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const AgentEvent& event : events_) all.push_back(agent_event_json(event));
    return all;
  }

  test::TemporaryFolder folder_;
  std::vector<std::string> replies_;
  std::vector<Json> requests_;
  AgentOptions options_;
  std::filesystem::path record_;
  std::vector<AgentEvent> events_;
  SmallServer server_;
};

const std::vector<std::string> kReplies = {
    "1. search(\"Ann\")\n2. search(\"Bob\")\n3. year(\"$1\")\n4. year(\"$2\")\nThought: subtract\n5. "
    "math(\"$3 - $4\")\njoin()\n",
    "Thought: 3 years\nAction: Finish(Bob is 3 years older.)"};

TEST_F(Asking, AnswersWithToolsAndReplaysExactly) {
  record_ = folder_.path() / "run.jsonl";
  const AgentAnswer answer = ask(kReplies);
  EXPECT_EQ(answer.error, "");
  EXPECT_EQ(answer.text, "Bob is 3 years older.");
  EXPECT_EQ(answer.calls, 5);
  EXPECT_EQ(answer.rounds, 1);
  EXPECT_EQ(answer.requests, 2);
  EXPECT_THAT(requests_[1]["messages"].back()["content"].get<std::string>(),
              HasSubstr("5. math(expression=\"${3} - ${4}\")\n   Observation: 3\n"));

  const std::vector<std::string> recorded = lines();
  for (int i = 0; i < 2; ++i) {
    events_.clear();
    std::string question;
    const AgentAnswer again =
        replay_agent(record_, question, [this](const AgentEvent& event) { events_.push_back(event); });
    EXPECT_EQ(question, "Who is older?");
    EXPECT_EQ(again.text, answer.text);
    EXPECT_EQ(again.seconds, answer.seconds);
    EXPECT_EQ(again.calls, answer.calls);
    EXPECT_EQ(lines(), recorded);
  }
  EXPECT_EQ(requests_.size(), 2u);
}

TEST_F(Asking, RefusesRecordingsThatAreNone) {
  record_ = folder_.path() / "run.jsonl";
  ask(kReplies);
  const std::string whole = test::read_file(record_);
  std::string question;
  const auto failure = [&](const std::string& text) -> std::string {
    folder_.write("broken", text);
    try {
      replay_agent(folder_.path() / "broken", question);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(failure(whole), "none");
  EXPECT_THAT(failure(""), HasSubstr("it is no recording of the agent"));
  EXPECT_THAT(failure("{}\n"), HasSubstr("it is no recording of the agent"));
  EXPECT_THAT(failure("nonsense"), HasSubstr("line 1 is no JSON"));
  EXPECT_THAT(failure(whole.substr(0, whole.rfind('[', whole.size() - 3))),
              HasSubstr("it ends before the run"));
  EXPECT_THAT(failure(whole.substr(0, whole.find('\n') + 1) + "[5,\"timer\",77,null]\n"),
              HasSubstr("timer 77"));
  EXPECT_THAT(failure(whole.substr(0, whole.find('\n') + 1) + "[5]\n"), HasSubstr("not understood"));
  for (const char* const number : {"2e110", "-9000000000000000000", "18000000000000000000"}) {
    EXPECT_THAT(failure(whole.substr(0, whole.find('\n') + 1) + "[" + number + ",\"timer\",1,null]\n"),
                HasSubstr("a number out of its range"));
  }
  EXPECT_THAT(failure("{\"verbatim_agent_recording\":99}"), HasSubstr("of another version"));
}

TEST_F(Asking, AsksAPersonBeforeACall) {
  std::string asked;
  options_.ask = [&](const std::string& tool, const std::string& arguments,
                     std::function<void(bool)> answer) {
    asked += tool + arguments;
    std::thread([answer = std::move(answer)] { answer(false); }).detach();
  };
  record_ = folder_.path() / "run.jsonl";
  ask({"1. wipe()\njoin()", "Action: Finish(no)"});
  EXPECT_EQ(asked, "wipe{}");
  EXPECT_THAT(requests_[1]["messages"].back()["content"].get<std::string>(),
              HasSubstr("(failed: the call was not allowed)"));
  const std::vector<std::string> recorded = lines();
  events_.clear();
  std::string question;
  replay_agent(record_, question, [this](const AgentEvent& event) { events_.push_back(event); });
  EXPECT_EQ(lines(), recorded);
}

TEST_F(Asking, AllowsEverythingIfItIsToldTo) {
  options_.allow_all = true;
  ask({"1. wipe()\njoin()", "Action: Finish(no)"});
  EXPECT_THAT(requests_[1]["messages"].back()["content"].get<std::string>(), HasSubstr("Observation: wiped"));
}

TEST_F(Asking, EndsWhenItIsCancelled) {
  replies_ = {"1. never()\n2. never()\njoin()"};
  record_ = folder_.path() / "run.jsonl";
  Agent agent(options_);
  std::thread other;
  const AgentAnswer answer = agent.ask(
      "q",
      [&](const AgentEvent& event) {
        events_.push_back(event);
        if (event.kind == "started" && event.task == 2) other = std::thread([&] { agent.cancel(); });
      },
      record_);
  other.join();
  EXPECT_TRUE(answer.cancelled);
  EXPECT_EQ(answer.error, "it was called off");
  const std::vector<std::string> recorded = lines();
  events_.clear();
  std::string question;
  replay_agent(record_, question, [this](const AgentEvent& event) { events_.push_back(event); });
  EXPECT_EQ(lines(), recorded);
}

TEST_F(Asking, ReportsARunAsAPage) {
  ask(kReplies);
  const std::string page = agent_report("Who is <older>?", events_, {.prompt = 1, .reply = 2});
  EXPECT_THAT(page, HasSubstr("<h1>Who is &lt;older&gt;?</h1>"));
  EXPECT_THAT(page, HasSubstr("Bob is 3 years older."));
  EXPECT_THAT(page, HasSubstr(" seconds, 2 requests to the model, "));
  EXPECT_THAT(page, HasSubstr(" written, which cost 0.00"));
  EXPECT_THAT(page, HasSubstr("5. math"));
  EXPECT_THAT(page, HasSubstr("The critical path, which decided when the answer was there: plan → "));
  EXPECT_EQ(page.find("http"), std::string::npos);  // whole in itself
}

TEST(AgentReport, FollowsTheCriticalPathThroughPlansCallsAndAnswers) {
  const auto asked = [](double seconds, const char* what, int64_t round) {
    return AgentEvent{.seconds = seconds, .kind = "asked", .round = round, .text = what};
  };
  const auto replied = [](double seconds) { return AgentEvent{.seconds = seconds, .kind = "replied"}; };
  const auto task = [](double seconds, const char* kind, int64_t id, std::vector<int64_t> inputs = {}) {
    return AgentEvent{.seconds = seconds,
                      .kind = kind,
                      .task = id,
                      .tool = "t",
                      .state = "done",
                      .inputs = std::move(inputs)};
  };
  // Task 2 ends last of the first plan, whose reply goes on after its line; task 3 uses task 1, which had
  // ended long before its line was there.
  const std::string page =
      agent_report("q",
                   {asked(0, "plan", 1), task(1, "task", 1), task(1, "started", 1), task(1.5, "settled", 1),
                    task(2, "task", 2), task(2, "started", 2), replied(3), task(6, "settled", 2),
                    asked(6, "join", 1), replied(7), asked(7, "plan", 2), task(9, "task", 3, {1}),
                    task(9, "started", 3), replied(9.5), task(11, "settled", 3), asked(11, "join", 2),
                    replied(12.25), AgentEvent{.seconds = 12.25, .kind = "answer", .text = "a"}},
                   {});
  EXPECT_THAT(page, HasSubstr("plan → 2. t → join → plan → 3. t → join (6.250 s of the model, 6.000 s of "
                              "calls)"));
}

TEST_F(Asking, LeavesOutAToolOfAnOddNameAndSaysSo) {
  folder_.write("server.sh", R"SH(while read -r line; do
    case "$line" in
      *'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{}}' ;;
      *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a b"},{"name":"join"},{"name":"good"},{"name":"good"},{"name":"good"}]}}' ;;
      *'"tools/call"'*) echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"called"}]}}' ;;
    esac
  done)SH");
  folder_.write("tools.json", agent::dump({{"mcpServers",
                                            {{"s",
                                              {{"command", "sh"},
                                               {"args", {(folder_.path() / "server.sh").string()}},
                                               {"settings", {{"policy", "allow"}}}}}}}}));
  replies_ = {"1. s.join()\njoin()", "Action: Finish(yes)"};
  Agent agent(options_);
  EXPECT_THAT(
      agent.warnings(),
      ElementsAre("a tool of the server `s` is left out: `a b` is no name of a tool: up to 128 letters, "
                  "digits, `_`, `-`, `.` and `/`",
                  "a tool of the server `s` is left out: there are two tools called `good`"));
  EXPECT_EQ(agent.ask("q").text, "yes");
  EXPECT_THAT(requests_[1]["messages"].back()["content"].get<std::string>(),
              HasSubstr("Observation: called"));
}

TEST_F(Asking, LetsServersEndByThemselvesWhenAnotherCannotBeHad) {
  folder_.write("server.sh", R"SH(while read -r line; do
    case "$line" in
      *'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{}}' ;;
      *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}' ;;
    esac
  done
  echo over > "$(dirname "$0")/log")SH");
  folder_.write(
      "tools.json",
      agent::dump({{"mcpServers",
                    {{"good", {{"command", "sh"}, {"args", {(folder_.path() / "server.sh").string()}}}},
                     {"bad", {{"command", "/no/such/server"}}}}}}));
  EXPECT_THROW(Agent agent(options_), Error);
  EXPECT_EQ(test::read_file(folder_.path() / "log"), "over\n");
}

TEST_F(Asking, EndsTheRunWhenWhoIsToldThrows) {
  Agent agent(options_);
  replies_ = {"1. never()\n2. never()\njoin()", "Action: Finish(no)"};
  int told = 0;
  EXPECT_THROW(agent.ask("q",
                         [&](const AgentEvent& event) {
                           ++told;
                           if (event.kind == "started") throw std::runtime_error("enough");
                         }),
               std::runtime_error);
  const int before = told;
  agent.cancel();  // there is nothing left to end
  replies_ = {"none", "Action: Finish(no)", "1. search(\"Ann\")\njoin()", "Action: Finish(yes)"};
  requests_.resize(2);
  const AgentAnswer answer = agent.ask("q");
  EXPECT_EQ(answer.text, "yes");
  EXPECT_EQ(told, before);
}

TEST_F(Asking, EndsTheRunWhenWhoIsAskedThrows) {
  options_.ask = [](const std::string&, const std::string&, const std::function<void(bool)>&) {
    throw std::runtime_error("nobody");
  };
  EXPECT_THROW(ask({"1. wipe()\njoin()", "Action: Finish(no)"}), std::runtime_error);
}

TEST_F(Asking, RefusesFilesOfToolsThatAreNotUnderstood) {
  const auto failure = [&](const std::string& text) -> std::string {
    folder_.write("t.json", text);
    options_.tools = folder_.path() / "t.json";
    try {
      Agent agent(options_);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(failure("{}"), "none");
  EXPECT_THAT(failure("{"), HasSubstr("it is no JSON"));
  EXPECT_THAT(failure(R"({"tool": []})"), HasSubstr("`tool` is no key here"));
  EXPECT_THAT(failure(R"({"tools": [{"function": {"name": "a"}}]})"),
              HasSubstr("tools[0]: a tool has either a `command` or a `url`"));
  EXPECT_THAT(failure(R"({"tools": [{"function": {"name": "math"}, "command": ["x"]}]})"),
              HasSubstr("two tools called `math`"));
  EXPECT_THAT(failure(R"({"tools": [{"function": {"name": "join"}, "command": ["x"]}]})"),
              HasSubstr("no tool may be called `join`"));
  EXPECT_THAT(failure(R"({"tools": [{"function": {"name": "a"}, "url": "ftp://x"}]})"),
              HasSubstr("is no address"));
  EXPECT_THAT(
      failure(
          R"({"tools": [{"function": {"name": "a"}, "command": ["x"], "settings": {"policy": "maybe"}}]})"),
      HasSubstr("tools[0].settings: `policy` should be"));
  EXPECT_THAT(
      failure(
          R"({"tools": [{"function": {"name": "a"}, "command": ["x"], "settings": {"hedge_after": 1}}]})"),
      HasSubstr("must be `idempotent`"));
  EXPECT_THAT(
      failure(R"({"tools": [{"function": {"name": "a"}, "command": ["x"], "settings": {"seconds": -1}}]})"),
      HasSubstr("`seconds` should be a number"));
  EXPECT_THAT(failure(R"({"mcpServers": {"s": {}}})"), HasSubstr("mcpServers.s: a server has either"));
  EXPECT_THAT(failure(R"({"mcpServers": {"s": {"command": "false"}}})"),
              HasSubstr("the server of tools `s`: "));
  folder_.write("server.sh", R"SH(while read -r line; do
    case "$line" in
      *'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{}}' ;;
      *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"read_file"},{"name":"write_file"}]}}' ;;
    esac
  done)SH");
  const auto with_setting = [&](const std::string& tool) {
    return failure(agent::dump({{"mcpServers",
                                 {{"s",
                                   {{"command", "sh"},
                                    {"args", {(folder_.path() / "server.sh").string()}},
                                    {"tools", {{tool, {{"policy", "deny"}}}}}}}}}}));
  };
  EXPECT_EQ(with_setting("write_file"), "none");
  EXPECT_EQ(with_setting("write_fil"),
            "mcpServers.s.tools.write_fil: the server has no such tool; it has `read_file`, `write_file`");
  options_.endpoint.clear();
  EXPECT_THAT(failure("{}"), HasSubstr("an endpoint or an engine"));
  EXPECT_THROW(agent_strategy("best"), Error);
}

}  // namespace
}  // namespace verbatim
