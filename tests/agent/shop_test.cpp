#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/json.h"
#include "agent/small_server.h"
#include "support/environment.h"
#include "support/run_program.h"
#include "support/test_data.h"
#include "verbatim/agent.h"

namespace verbatim {
namespace {

using agent::Json;
using test::SmallServer;
using ::testing::ElementsAre;

namespace fs = std::filesystem;

const char* const kQuestion = "Find a black queen-sized bed below 400.";
const char* const kAnswer = "item 51, Cedar queen-sized bed, model 0, for 190";

fs::path example() {
  return test::own_data().parent_path().parent_path() / "examples" / "agent" / "shop";
}

/// The results of a request to the joiner or the planner, each a JSON value, by the number of their task.
std::map<int64_t, Json> results_in(const std::string& text) {
  constexpr std::string_view kMark = "Observation: ";
  std::map<int64_t, Json> results;
  for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at + 1)) {
    const size_t line = text.rfind('\n', text.rfind('\n', at) - 1);
    const size_t value = at + kMark.size();
    results[std::stoll(text.substr(line + 1))] =
        Json::parse(text.substr(value, text.find('\n', value) - value));
  }
  return results;
}

/// The rule that plans and judges in the place of a model: search, explore what the search found, and take
/// the cheapest bed that fits.
std::string reply_to(const Json& messages, const std::string& found) {
  const std::string last = messages.back()["content"];
  const bool joins = last.starts_with("Question: ");
  if (!joins && found.empty()) return "1. search_shop(\"black queen-sized bed\")\njoin()";
  if (!joins) {
    std::string plan;
    int64_t id = 2;
    for (const Json& item : Json::parse(found)) {
      plan += std::to_string(id++) + ". explore(" + item["item"].dump() + ")\n";
    }
    return plan + "join()";
  }
  Json best;
  for (const auto& [id, item] : results_in(last)) {
    if (!item.is_object() || item["size"] != "queen-sized" || item["price"] >= 400) continue;
    const std::string title = item["title"];
    const bool black =
        std::find(item["colours"].begin(), item["colours"].end(), "black") != item["colours"].end();
    if (!black || title.find("bed") == std::string::npos) continue;
    if (best.is_null() || item["price"] < best["price"]) best = item;
  }
  if (best.is_null())
    return "Thought: Titles say neither price nor colour.\nAction: Replan(explore the items that were found)";
  return "Thought: The cheapest one that fits.\nAction: Finish(item " + best["item"].dump() + ", " +
         best["title"].get<std::string>() + ", for " + best["price"].dump() + ")";
}

/// What runs, and in which rounds items are explored.
struct Watched {
  int64_t running = 0;
  int64_t most = 0;
  std::set<int64_t> rounds;

  void add(const AgentEvent& event) {
    running += event.kind == "started" ? 1 : event.kind == "settled" ? -1 : 0;
    most = std::max(most, running);
    if (event.tool == "explore") rounds.insert(event.round);
  }
};

// The search of the first plan finds the items that the second plan explores, all side by side.
TEST(Shop, IsExploredByASecondPlanInTheRecordedExample) {
  std::string question;
  Watched watched;
  const AgentAnswer answer =
      replay_agent(example() / "run.jsonl", question, [&](const AgentEvent& event) { watched.add(event); });
  EXPECT_EQ(question, kQuestion);
  EXPECT_EQ(answer.text, kAnswer);
  EXPECT_EQ(answer.calls, 11);
  EXPECT_GE(watched.most, 5);
  EXPECT_THAT(watched.rounds, ElementsAre(2));
}

TEST(Shop, IsExploredByTheRuleWithTheToolsThemselves) {
  const test::TemporaryFolder folder;
  test::Environment environment;
  environment.set("SHOP", (folder.path() / "shop.db").string());
  const std::string program = (example() / "shop.py").string();
  test::RunOptions python;
  python.program = "/usr/bin/python3";
  const test::RunResult made = test::run_program({program, "make"}, python);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  std::string tools = test::read_file(example() / "tools.json");
  const std::string relative = "examples/agent/shop/shop.py";
  for (size_t at = tools.find(relative); at != std::string::npos;
       at = tools.find(relative, at + program.size()))
    tools.replace(at, relative.size(), program);
  folder.write("tools.json", tools);

  std::string found;  // what the search came to
  SmallServer server([&](const std::string&, const std::string& body, const auto& send) {
    const std::string reply = reply_to(Json::parse(body)["messages"], found);
    send(SmallServer::answer(
        200, "text/event-stream",
        "data: " + agent::dump({{"choices", {{{"delta", {{"content", reply}}}}}}}) + "\n\n" +
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"));
  });
  AgentOptions options;
  options.endpoint = server.url("/v1");
  options.tools = folder.path() / "tools.json";
  options.examples = test::read_file(example() / "examples.txt");
  Agent agent(options);
  Watched watched;
  const AgentAnswer answer = agent.ask(kQuestion, [&](const AgentEvent& event) {
    watched.add(event);
    if (event.kind == "settled" && event.tool == "search_shop") found = event.text;
  });
  EXPECT_EQ(answer.error, "");
  EXPECT_EQ(answer.text, kAnswer);
  EXPECT_EQ(answer.calls, 11);
  EXPECT_GE(watched.most, 5);
  EXPECT_THAT(watched.rounds, ElementsAre(2));
}

}  // namespace
}  // namespace verbatim
