#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "agent/call_tool.h"
#include "agent/mcp/mcp_client.h"
#include "agent/scripted_server.h"
#include "agent/small_server.h"
#include "support/eventually.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim::agent {
namespace {

using test::call_tool;
using test::eventually;
using test::kScriptedServer;
using test::SmallServer;
using ::testing::HasSubstr;

class Mcp : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("server.sh", kScriptedServer);
    connect({.name = "s",
             .process = {.command = {"sh", (folder_.path() / "server.sh").string()},
                         .environment = {{"LOG", (folder_.path() / "log").string()}}}});
  }
  void connect(McpServerOptions options) { client_ = std::make_shared<McpClient>(loop_, std::move(options)); }

  std::string list(std::vector<McpClient::Listed>& tools, Duration limit = std::chrono::seconds(30)) {
    std::string failure = "nothing came";
    loop_.post([&] {
      client_->list(limit, [&](std::vector<McpClient::Listed> found, const std::string& error) {
        tools = std::move(found);
        failure = error;
        loop_.stop();
      });
    });
    loop_.run();
    return failure;
  }

  ToolResult call(const std::string& name, Json output_schema = nullptr,
                  Duration cancel_after = Duration(0)) {
    const auto tool = mcp_tool(
        client_, {.declaration = {.name = name}, .output_schema = std::move(output_schema)}, "s." + name);
    return call_tool(loop_, *tool, {{"s", "hello"}}, cancel_after);
  }

  test::TemporaryFolder folder_;
  RealLoop loop_;
  std::shared_ptr<McpClient> client_;
};

TEST_F(Mcp, ListsTheToolsOfAllPages) {
  std::vector<McpClient::Listed> tools;
  EXPECT_EQ(list(tools), "");
  ASSERT_EQ(tools.size(), 4u);
  EXPECT_EQ(tools[0].declaration.description, "Says it again");
  EXPECT_EQ(tools[0].declaration.parameters["required"][0], "s");
  EXPECT_EQ(tools[1].declaration.name, "second");
  EXPECT_EQ(tools[1].declaration.parameters["type"], "object");
}

TEST_F(Mcp, CallsToolsAndTellsOfTheirProgress) {
  const auto tool = mcp_tool(client_, {.declaration = {.name = "echo"}}, "echo");
  std::string progress;
  ToolResult result;
  std::shared_ptr<ToolCall> call;
  loop_.post([&] {
    call = tool->start({{"s", "x"}}, {.done =
                                          [&](ToolResult got) {
                                            result = std::move(got);
                                            loop_.stop();
                                          },
                                      .progress = [&](const std::string& what) { progress += what; }});
  });
  loop_.run();
  EXPECT_EQ(result.value, "you said it\n(image, image/png, 3 bytes)\ninside");
  EXPECT_EQ(progress, "1 of 2: half");
}

TEST_F(Mcp, TakesStructuredResultsAndErrors) {
  EXPECT_EQ(call("json").value, (Json{{"sum", {5}}}));
  EXPECT_EQ(call("fails").error, "no such city");
  EXPECT_EQ(call("error").error, "bad arguments");
  EXPECT_EQ(call("odd").error, "the server's result is no object");
}

TEST_F(Mcp, NoticesALieAboutASchema) {
  std::vector<McpClient::Listed> tools;
  EXPECT_EQ(list(tools), "");
  EXPECT_EQ(
      call("lies", tools[2].output_schema).error,
      "the result does not fit the schema that the server gave: `sum` should be a number, and is a string");
}

TEST_F(Mcp, SurvivesAServerThatDiesAndStartsItAgain) {
  const ToolResult result = call("dies");
  EXPECT_EQ(result.error, "the server ended with status 7: out of luck ");
  EXPECT_FALSE(result.again);  // the call may have done something
  EXPECT_TRUE(call("echo").done);
  for (int i = 0; i < 3; ++i) call("dies");
  EXPECT_EQ(call("echo").error, "the server ended too often to be started again");
}

TEST_F(Mcp, SurvivesAnAnswerOfAHundredMegabytes) {
  EXPECT_EQ(call("large").error, "the server sent more than 16 MiB in one message, and was ended");
  EXPECT_TRUE(call("echo").done);
}

TEST_F(Mcp, SurvivesAServerThatBabbles) {
  EXPECT_EQ(call("babbles").error, "the server does not speak JSON-RPC");
}

TEST_F(Mcp, EndsAServerThatAsksWithoutReadingTheAnswers) {
  EXPECT_EQ(call("pings").error, "the server left more than 32 MiB of messages unread, and was ended");
}

TEST_F(Mcp, EndsAServerThatSendsAnObjectOfTooManyMembers) {
  EXPECT_EQ(call("members").error, "the server was ended: an object of the JSON has more than 2000 members");
}

TEST_F(Mcp, TellsOfProgressNowAndThenAlone) {
  const auto tool = mcp_tool(client_, {.declaration = {.name = "reports"}}, "reports");
  int told = 0;
  Time end{0};
  std::shared_ptr<ToolCall> call;
  loop_.post([&] {
    call = tool->start({{"s", "x"}}, {.done =
                                          [&](const ToolResult&) {
                                            end = loop_.now();
                                            loop_.stop();
                                          },
                                      .progress = [&](const std::string&) { ++told; }});
  });
  loop_.run();
  EXPECT_GE(told, 1);
  EXPECT_LE(told, 1 + end / std::chrono::milliseconds(100));
}

TEST_F(Mcp, LetsServersEndByThemselves) {
  EXPECT_TRUE(call("echo").done);
  const std::shared_ptr<McpClient> first = client_;
  SetUp();
  EXPECT_TRUE(call("echo").done);
  end_servers(loop_, {first, client_});
  EXPECT_EQ(test::read_file(folder_.path() / "log"), "over\nover\n");
  end_servers(loop_, {first, client_});  // nothing is left to end
}

TEST_F(Mcp, AsksServersToEndThatDoNotEndByThemselves) {
  EXPECT_TRUE(call("deaf").done);
  end_servers(loop_, {client_});
  EXPECT_EQ(test::read_file(folder_.path() / "log"), "asked\n");
}

TEST_F(Mcp, TellsAServerThatHangsThatNobodyWaits) {
  EXPECT_EQ(call("hangs", nullptr, std::chrono::milliseconds(300)).error, "it was cancelled");
  EXPECT_TRUE(call("echo").done);  // the server is as it was
  EXPECT_EQ(test::read_file(folder_.path() / "log"), "cancelled\n");
}

TEST_F(Mcp, SaysWhenAServerCannotBeHad) {
  std::vector<McpClient::Listed> tools;
  connect({.name = "s", .process = {.command = {"/no/such/server"}}});
  EXPECT_EQ(list(tools), "cannot start /no/such/server: No such file or directory");
  EXPECT_EQ(call("echo").error, "cannot start /no/such/server: No such file or directory");
  connect({.name = "s", .process = {.command = {"sleep", "100"}}});
  EXPECT_EQ(list(tools, std::chrono::milliseconds(200)),
            "the server has not listed its tools within 0.2 s of its start");
  connect({.name = "s", .process = {.command = {"false"}}});
  EXPECT_EQ(list(tools), "the server cannot be initialized: the server ended with status 1");
}

// The server has begun before it is to end, and passes the signal over that asks it to end, so that neither a
// slow start nor a slow end ends it otherwise.
TEST_F(Mcp, LetsAServerEndByItselfThatDoesNotAnswerAtItsStart) {
  const std::string log = (folder_.path() / "log").string();
  const std::string begun = (folder_.path() / "begun").string();
  connect({.name = "s",
           .process = {.command = {"sh", "-c",
                                   "trap '' TERM; echo > " + begun + "; cat > /dev/null; echo over > " + log +
                                       ".part; mv " + log + ".part " + log}}});
  std::vector<McpClient::Listed> tools;
  EXPECT_NE(list(tools, std::chrono::milliseconds(50)), "");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(begun); }));
  end_servers(loop_, {client_});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(log); }));
  EXPECT_EQ(test::read_file(log), "over\n");
}

TEST_F(Mcp, CallsAServerThatBeganTooLateToListItsTools) {
  const std::string go = (folder_.path() / "go").string();
  connect({.name = "s",
           .process = {.command = {"sh", "-c",
                                   "while [ ! -e " + go + " ]; do sleep 0.02; done; exec sh " +
                                       (folder_.path() / "server.sh").string()},
                       .environment = {{"LOG", (folder_.path() / "log").string()}}}});
  std::vector<McpClient::Listed> tools;
  EXPECT_THAT(list(tools, std::chrono::milliseconds(50)), HasSubstr("has not listed its tools"));
  folder_.write("go", "");
  EXPECT_EQ(call("echo").error, "");
  EXPECT_EQ(list(tools), "");
  EXPECT_EQ(tools.size(), 4u);
}

TEST_F(Mcp, SurvivesAServerThatRefusesToBeginAndTalksOn) {
  folder_.write("refuses.sh", R"(read -r line
    printf '{"jsonrpc":"2.0","id":1,"error":{"message":"not today"}}\n{"jsonrpc":"2.0","method":"x"}\n{}\n'
    sleep 100)");
  connect({.name = "s", .process = {.command = {"sh", (folder_.path() / "refuses.sh").string()}}});
  std::vector<McpClient::Listed> tools;
  EXPECT_EQ(list(tools), "the server cannot be initialized: not today");
  SmallServer server([&](const std::string&, const std::string&, const auto& send) {
    send(SmallServer::answer(200, "text/event-stream",
                             "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"message\":\"not today\"}}\n\n"
                             "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\ndata: {}\n\n"));
  });
  connect({.name = "s", .url = server.url()});
  EXPECT_EQ(list(tools), "the server cannot be initialized: not today");
}

TEST_F(Mcp, PutsNoVersionIntoHeadersThatIsNone) {
  std::string version;
  std::string heads;
  SmallServer server([&](const std::string& head, const std::string& body, const auto& send) {
    heads += head;
    const Json message = Json::parse(body);
    if (!message.contains("id")) return send(SmallServer::answer(202, "text/plain", ""));
    const Json result = message["method"] == "initialize" ? Json{{"protocolVersion", version}}
                                                          : Json{{"tools", {{{"name", "echo"}}}}};
    send(SmallServer::answer(200, "application/json",
                             dump({{"jsonrpc", "2.0"}, {"id", message["id"]}, {"result", result}})));
  });
  for (const std::string& odd : {std::string(100'000, '2'), std::string("2025\r\nX-Other: 1")}) {
    version = odd;
    connect({.name = "s", .url = server.url()});
    std::vector<McpClient::Listed> tools;
    EXPECT_EQ(list(tools), "");
    EXPECT_EQ(tools.size(), 1u);
  }
  EXPECT_EQ(heads.find("X-Other"), std::string::npos);
}

TEST_F(Mcp, TriesAgainOnlyWhatDidNothing) {
  SmallServer server([&](const std::string&, const std::string& body, const auto& send) {
    const Json message = Json::parse(body);
    if (!message.contains("id")) return send(SmallServer::answer(202, "text/plain", ""));
    if (message["method"] == "initialize") {
      return send(SmallServer::answer(200, "application/json",
                                      dump({{"id", message["id"]}, {"result", Json::object()}})));
    }
    const std::string name = message["params"]["name"];
    if (name != "closes") send(SmallServer::answer(name == "busy" ? 429 : 503, "text/plain", "later"));
  });
  connect({.name = "s", .url = server.url()});
  EXPECT_TRUE(call("busy").again);
  EXPECT_FALSE(call("broken").again);
  EXPECT_FALSE(call("closes").again);
  connect({.name = "s", .url = "http://127.0.0.1:1/"});
  EXPECT_TRUE(call("echo").again);
}

TEST_F(Mcp, OutlivesAServerThatRefusesToBegin) {
  const std::string refusal = R"({"jsonrpc":"2.0","id":1,"error":{"message":"no"}})";
  const std::string said = "the server cannot be initialized: no";
  std::vector<McpClient::Listed> tools;
  // Another line comes in the same piece, and is read after the connection has to be closed.
  folder_.write("refuses.sh",
                "printf '" + refusal + "\\n{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\\n'; sleep 100");
  connect({.name = "s", .process = {.command = {"sh", (folder_.path() / "refuses.sh").string()}}});
  EXPECT_EQ(list(tools), said);
  SmallServer server([&](const std::string&, const std::string&, const auto& send) {
    send(SmallServer::answer(200, "application/json", refusal));
  });
  connect({.name = "s", .url = server.url()});
  EXPECT_EQ(list(tools), said);
  SmallServer streaming([&](const std::string&, const std::string&, const auto& send) {
    send(SmallServer::answer(200, "text/event-stream", "data: " + refusal + "\n\ndata: {}\n\n"));
  });
  connect({.name = "s", .url = streaming.url()});
  EXPECT_EQ(list(tools), said);
}

TEST_F(Mcp, SpeaksOverHttp) {
  std::string sessions;
  int begun = 0;
  SmallServer server([&](const std::string& head, const std::string& body, const auto& send) {
    const Json message = Json::parse(body);
    if (head.find("Mcp-Session-Id: abc") != std::string::npos) sessions += "s";
    if (!message.contains("id")) return send(SmallServer::answer(202, "text/plain", ""));
    const std::string method = message["method"];
    const auto reply = [&](const Json& result) {
      return dump({{"jsonrpc", "2.0"}, {"id", message["id"]}, {"result", result}});
    };
    if (method == "initialize") {
      ++begun;
      return send(SmallServer::answer(200, "application/json", reply({{"protocolVersion", "2025-06-18"}}),
                                      "Mcp-Session-Id: abc\r\n"));
    }
    if (method == "tools/list") {
      return send(SmallServer::answer(200, "application/json", reply({{"tools", {{{"name", "echo"}}}}})));
    }
    if (message["params"]["name"] == "gone")
      return send(SmallServer::answer(404, "text/plain", "no session"));
    if (message["params"]["name"] == "cut")
      return send(SmallServer::answer(200, "text/event-stream", ": nothing\n\n"));
    const std::string events =
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n"
        "data: " +
        reply({{"content", {{{"type", "text"}, {"text", "hi"}}}}}) + "\n\n";
    send(SmallServer::answer(200, "text/event-stream", events));
  });
  connect({.name = "s", .url = server.url("/mcp")});
  std::vector<McpClient::Listed> tools;
  EXPECT_EQ(list(tools), "");
  ASSERT_EQ(tools.size(), 1u);
  EXPECT_EQ(call("echo").value, "hi");
  EXPECT_EQ(call("gone").error,
            "the server has ended the session: the server answered with status 404: no session");
  // With a session of its own, which the server is told of when it is begun.
  EXPECT_EQ(call("cut").error, "the server ended its answer without a result");
  EXPECT_EQ(call("echo").value, "hi");
  EXPECT_EQ(sessions, "sssssss");
  EXPECT_EQ(begun, 2);
}

}  // namespace
}  // namespace verbatim::agent
