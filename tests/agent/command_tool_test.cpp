#include "agent/tools/command_tool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/call_tool.h"
#include "agent/small_server.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim::agent {
namespace {

using test::call_tool;
using test::SmallServer;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const ToolDeclaration kTool = {.name = "t"};

ToolResult run(const std::vector<std::string>& command, const Json& arguments = Json::object(),
               Duration cancel_after = Duration(0)) {
  RealLoop loop;
  return call_tool(loop, *command_tool(loop, kTool, {.command = command}), arguments, cancel_after);
}

TEST(CommandTool, AnswersWhatTheProgramPrints) {
  EXPECT_EQ(run({"cat"}, {{"a", "$(id)"}}).value, (Json{{"a", "$(id)"}}));  // an object is JSON
  EXPECT_EQ(run({"echo", "{a}", "x{a}", "{b}"}, {{"a", "two  words; $HOME `id`"}}).value,
            "two  words; $HOME `id` x{a} ");
  EXPECT_EQ(run({"printf", "12"}).value, "12");
  const std::string large(3'000'000, 'y');
  EXPECT_EQ(run({"cat"}, {{"a", large}}).value["a"], large);
}

TEST(CommandTool, SaysWhyItFailed) {
  EXPECT_EQ(run({"sh", "-c", "echo partial; echo no such place >&2; exit 3"}).error,
            "sh ended with status 3: no such place ");
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}).error, "sh ended with status 137");
  EXPECT_EQ(run({"/no/such/program"}).error, "cannot start /no/such/program: No such file or directory");
  EXPECT_EQ(run({"sh", "-c", "yes"}).error, "it answered more than 8 MiB");
}

TEST(CommandTool, EndsWithAllThatItStartedWhenItIsCancelled) {
  const auto begin = std::chrono::steady_clock::now();
  // The child ignores the request to end, and has a child of its own.
  const ToolResult result = run({"sh", "-c", "trap '' TERM; sleep 100 & sleep 100"}, Json::object(),
                                std::chrono::milliseconds(100));
  EXPECT_FALSE(result.done);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(CommandTool, MayReadNothingOfItsInput) {
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(run({"sh", "-c", "exec <&-; echo x"}, {{"a", std::string(100'000, 'y')}}).value, "x");
}

TEST(CommandTool, InheritsNothingThatIsOpenHere) {
  const int left = open("/dev/null", O_RDONLY);  // not marked to be closed, as sockets are not
  // The last descriptor is that of the folder that ls reads.
  EXPECT_EQ(run({"ls", "/proc/self/fd"}).value, "0\n1\n2\n3");
  close(left);
}

TEST(CommandTool, KeepsKeysFromPrograms) {
  setenv("OPENAI_API_KEY", "hidden", 1);
  EXPECT_EQ(run({"sh", "-c", "echo =$OPENAI_API_KEY="}).value, "==");
  unsetenv("OPENAI_API_KEY");
}

TEST(UrlTool, PostsArgumentsAndTakesTheAnswer) {
  std::string seen;
  SmallServer server([&](const std::string& head, const std::string& body, const auto& send) {
    seen = head.substr(0, head.find('\r')) + "|" + body;
    if (head.find("/busy") != std::string::npos) return send(SmallServer::answer(503, "text/plain", "later"));
    if (head.find("/short") != std::string::npos)
      return send("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabc");
    if (head.find("/large") != std::string::npos) {
      return send(SmallServer::answer(200, "text/plain", std::string(9 << 20, 'x')));
    }
    send(SmallServer::answer(200, "application/json", "{\"n\": [1]}"));
  });
  RealLoop loop;
  const auto ask = [&](const std::string& path) {
    return call_tool(loop, *url_tool(loop, kTool, server.url(path), {{"X-Key", "k"}}), {{"q", 1}});
  };
  EXPECT_EQ(ask("/a?b").value, (Json{{"n", {1}}}));
  EXPECT_EQ(seen, "POST /a?b HTTP/1.1|{\"q\":1}");
  const ToolResult busy = ask("/busy");
  EXPECT_EQ(busy.error, "it answered with status 503: later");
  EXPECT_THAT(ask("/short").error, HasSubstr("reading the answer"));
  EXPECT_EQ(ask("/large").error, "it answered more than 8 MiB");
  EXPECT_THAT(call_tool(loop, *url_tool(loop, kTool, "http://127.0.0.1:1/", {}), {}).error,
              HasSubstr("connecting: Connection refused"));
}

TEST(UrlTool, TriesAgainOnlyWhatDidNothing) {
  std::atomic<int> status = 0;  // of the answer; 0: none
  SmallServer server([&](const std::string&, const std::string&, const auto& send) {
    send(status == 0 ? std::string() : SmallServer::answer(status, "text/plain", "x"));
  });
  RealLoop loop;
  const auto again = [&](const std::string& url) {
    const ToolResult result = call_tool(loop, *url_tool(loop, kTool, url, {}), {});
    EXPECT_FALSE(result.done);
    return result.again;
  };
  EXPECT_TRUE(again("http://127.0.0.1:1/"));
  EXPECT_TRUE(again("http://no-such-host.invalid/"));
  EXPECT_FALSE(again(server.url()));  // took the request, and closed the connection without a word
  for (const int one : {429, 500, 502, 503, 504}) {
    status = one;
    EXPECT_EQ(again(server.url()), one == 429) << one;
  }
}

TEST(UrlTool, EndsWhenItIsCancelled) {
  std::atomic<bool> over = false;
  SmallServer server([&](const std::string&, const std::string&, const auto&) {
    while (!over) usleep(1000);
  });
  RealLoop loop;
  EXPECT_EQ(
      call_tool(loop, *url_tool(loop, kTool, server.url(), {}), {}, std::chrono::milliseconds(50)).error,
      "it was cancelled");
  over = true;
}

TEST(HttpUrl, IsReadOrRefused) {
  const HttpUrl url = HttpUrl::parse("https://[::1]:8443/v1/x?y=1#z");
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.host + "|" + url.port + "|" + url.target, "::1|8443|/v1/x?y=1");
  EXPECT_EQ(HttpUrl::parse("http://host").port + HttpUrl::parse("http://host").target, "80/");
  for (const char* const bad :
       {"", "ftp://x", "http://", "http://a:b/", "http://a b/", "http://u@h/", "http://h/\r\nX: y"}) {
    EXPECT_THROW(HttpUrl::parse(bad), Error) << bad;
  }
}

TEST(EventStream, PutsEventsTogether) {
  const std::string text = "data: one\n\n: remark\nevent: x\r\ndata: two\r\ndata:lines\r\n\r\ndata: cut";
  for (size_t piece = 1; piece < text.size(); ++piece) {
    EventStream stream;
    std::string all;
    for (size_t at = 0; at < text.size(); at += piece) {
      stream.add(std::string_view(text).substr(at, piece),
                 [&](const std::string& data) { all += "<" + data + ">"; });
    }
    EXPECT_EQ(all, "<one><two\nlines>");
  }
}

}  // namespace
}  // namespace verbatim::agent
