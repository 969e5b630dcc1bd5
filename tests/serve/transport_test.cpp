#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/transport_fixture.h"

namespace verbatim {
namespace {

using test::eventually;
using test::kGetHello;
using test::RawAnswer;
using test::RawClient;
using ::testing::HasSubstr;

class Transport : public test::Transported {};

std::string post(const std::string& path, const std::string& body, const std::string& headers = {}) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + headers + "\r\n" + body;
}

TEST_F(Transport, AnswersSeveralRequestsOnOneConnection) {
  start();
  RawClient one = client();
  for (int i = 0; i < 3; ++i) {
    const RawAnswer answer = one.ask(kGetHello);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.headers.at("connection"), "keep-alive");
    EXPECT_EQ(answer.headers.at("content-type"), "text/plain");
    EXPECT_FALSE(answer.headers.at("x-request-id").empty());
  }
  EXPECT_EQ(transport_->counts().accepted, 1);
}

TEST_F(Transport, ClosesWhenTheClientWantsIt) {
  start();
  RawClient one = client();
  const RawAnswer answer = one.ask("GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(one.closed_within(std::chrono::seconds(5)));
  RawClient old = client();
  EXPECT_EQ(old.ask("GET /hello HTTP/1.0\r\n\r\n").body, "hello");
  EXPECT_TRUE(old.closed_within(std::chrono::seconds(5)));
}

TEST_F(Transport, AnswersRequestsThatWereSentAheadInTheirOrder) {
  start();
  RawClient one = client();
  std::string requests;
  for (int i = 0; i < 200; ++i)
    requests += i % 10 == 0 ? std::string("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
                            : post("/echo", "number " + std::to_string(i));
  ASSERT_TRUE(one.send(requests));
  for (int i = 0; i < 200; ++i) {
    const RawAnswer answer = one.answer();
    ASSERT_EQ(answer.status, 200) << i;
    EXPECT_EQ(answer.body, i % 10 == 0 ? "one two three" : "number " + std::to_string(i));
  }
}

TEST_F(Transport, TakesARequestByteByByte) {
  start();
  RawClient one = client();
  for (const char c : post("/echo", "slowly")) ASSERT_TRUE(one.send(std::string(1, c)));
  EXPECT_EQ(one.answer().body, "slowly");
}

TEST_F(Transport, TakesABodyInChunks) {
  start();
  RawClient one = client();
  const std::string head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(one.ask(head + "5\r\nhello\r\n6;name=value\r\n world\r\n0\r\nTrailer: x\r\n\r\n").body,
            "hello world");
  EXPECT_EQ(one.ask(head + "0\r\n\r\n").body, "");
  EXPECT_EQ(one.ask(kGetHello).body, "hello");
}

TEST_F(Transport, StreamsInChunksAndToOldClientsUntilTheEnd) {
  start();
  RawClient one = client();
  const RawAnswer answer = one.ask("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(answer.body, "one two three");
  EXPECT_EQ(answer.headers.at("transfer-encoding"), "chunked");
  EXPECT_EQ(one.ask(kGetHello).body, "hello");
  RawClient old = client();
  const RawAnswer whole = old.ask("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(whole.body, "one two three");
  EXPECT_EQ(whole.headers.count("transfer-encoding"), 0u);
}

TEST_F(Transport, AnswersAHeadWithoutTheBody) {
  start();
  RawClient one = client();
  one.send("HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const RawAnswer answer = one.answer(true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("content-length"), "5");
  one.send("HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(one.answer(true).status, 200);
  EXPECT_EQ(one.ask(kGetHello).body, "hello");
}

TEST_F(Transport, SaysThatABodyIsWantedBeforeItIsSent) {
  start();
  RawClient one = client();
  one.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(one.read(25), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(one.ask("body").body, "body");
  EXPECT_EQ(one.ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: tea\r\n\r\n").status,
            417);
}

TEST_F(Transport, RefusesABodyThatIsTooLargeBeforeItIsSent) {
  serve::TransportOptions options;
  options.request.body_bytes = 1000;
  start(options);
  RawClient one = client();
  const RawAnswer answer = one.ask(
      "POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.continues, 0);
  EXPECT_THAT(answer.body, HasSubstr("request_too_large"));
  EXPECT_THAT(answer.body, HasSubstr("1000 bytes"));
  EXPECT_TRUE(one.closed_within(std::chrono::seconds(5)));

  RawClient chunks = client();
  chunks.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 3; ++i) chunks.send("190\r\n" + std::string(400, 'x') + "\r\n");
  EXPECT_EQ(chunks.answer().status, 413);
  EXPECT_EQ(client().ask(post("/echo", std::string(1000, 'x'))).body.size(), 1000u);
}

TEST_F(Transport, RefusesHeadsThatAreTooLong) {
  start();
  EXPECT_EQ(client().ask("GET /" + std::string(40'000, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n").status, 431);
  EXPECT_EQ(client().ask("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(40'000, 'x') + "\r\n\r\n").status,
            431);
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 200; ++i) many += "X: y\r\n";
  EXPECT_EQ(client().ask(many + "\r\n").status, 431);
  expect_serves();
}

TEST_F(Transport, RefusesWhatIsNoRequestAndCloses) {
  start();
  const std::vector<std::pair<int, std::string>> requests = {
      {400, "hello\r\n\r\n"},
      {400, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
      {400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET hello HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET /../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET /%2e%2E/etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "CONNECT example.org:443 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nBad\x01Name: x\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: many\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
      {413, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"},
      {413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n"},
      {501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
      {415, "POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx"},
  };
  for (const auto& [status, request] : requests) {
    RawClient one = client();
    RawAnswer answer = one.ask(request);
    EXPECT_EQ(answer.status, status) << request;
    EXPECT_THAT(answer.body, HasSubstr(R"({"error":{"type":)")) << request;
    EXPECT_EQ(answer.headers["connection"], "close") << request;
    EXPECT_TRUE(one.closed_within(std::chrono::seconds(5))) << request;
  }
  expect_serves();
}

TEST_F(Transport, PassesOverEmptyLinesBeforeARequestAndFoldsSlashes) {
  start();
  EXPECT_EQ(client().ask("\r\n\r\nGET //hello/?x=1 HTTP/1.1\r\nHost: a\r\n\r\n").body, "hello");
  EXPECT_EQ(client().ask("GET http://localhost/hello HTTP/1.1\r\nHost: a\r\n\r\n").body, "hello");
}

TEST_F(Transport, TellsTheRequestsNameInItsAnswer) {
  start();
  RawClient one = client();
  const auto named = [&](const std::string& name) {
    return one.ask("GET /hello HTTP/1.1\r\nHost: a\r\nX-Request-Id: " + name + "\r\n\r\n")
        .headers["x-request-id"];
  };
  EXPECT_EQ(named("my-request.7"), "my-request.7");
  EXPECT_THAT(named("no <name>"), ::testing::StartsWith("req_"));
  EXPECT_THAT(named(std::string(200, 'x')), ::testing::StartsWith("req_"));
}

TEST_F(Transport, AnswersAClientThatHasStoppedSending) {
  start();
  RawClient one = client();
  one.send(std::string(kGetHello) + kGetHello);
  one.end_sending();
  EXPECT_EQ(one.answer().body, "hello");
  EXPECT_EQ(one.answer().body, "hello");
  EXPECT_TRUE(one.closed_within(std::chrono::seconds(5)));
  RawClient large = client();
  large.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  large.end_sending();
  EXPECT_EQ(large.answer().body.size(), size_t{8} << 20);
}

TEST_F(Transport, KeepsAClientThatHasStoppedSendingWhileItsAnswerTakesLong) {
  start();
  RawClient one = client();
  one.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
  one.end_sending();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(gone_, 0);
  EXPECT_EQ(transport_->counts().connections, 1);
}

TEST_F(Transport, NoticesAClientThatLeavesWhileItWaits) {
  start();
  for (const bool hard : {false, true}) {
    gone_ = 0;
    waiting_ = 0;
    RawClient one = client();
    one.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return waiting_ == 1; }));
    EXPECT_EQ(gone_, 0);
    hard ? one.reset() : one.close();
    EXPECT_TRUE(eventually([&] { return gone_ == 1; })) << hard;
  }
  ASSERT_TRUE(eventually([&] { return answered().size() == 2; }));
  EXPECT_EQ(answered()[0].status, 0);
  EXPECT_FALSE(answered()[0].whole);
}

TEST_F(Transport, NoticesAClientThatLeavesAStreamThatHasNothingToSay) {
  start();
  RawClient stays = client();
  stays.send("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
  stays.end_sending();  // it may still receive
  RawClient leaves = client();
  leaves.send("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(leaves.read(12), "HTTP/1.1 200");
  EXPECT_EQ(gone_, 0);
  leaves.close();
  EXPECT_TRUE(eventually([&] { return gone_ == 1; }));
  std::string received;
  while (received.find(":\n\n") == std::string::npos) {
    const std::string more = stays.read(1);
    ASSERT_FALSE(more.empty()) << received;
    received += more;
  }
  EXPECT_NE(received.find("data: one\n\n"), std::string::npos);
  EXPECT_EQ(gone_, 1);
}

TEST_F(Transport, NoticesAClientThatLeavesAfterItSentManyRequestsAhead) {
  start();
  RawClient one = client();
  one.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
  std::string ahead;
  while (ahead.size() < 100000) ahead += kGetHello;
  one.send(ahead);
  ASSERT_TRUE(eventually([&] { return waiting_ == 1 && transport_->counts().bytes_read >= 65536; }));
  EXPECT_EQ(gone_, 0);
  one.close();
  EXPECT_TRUE(eventually([&] { return gone_ == 1; }));
}

TEST_F(Transport, SendsAPieceOfAStreamThatIsLargerThanWhatMayWait) {
  serve::TransportOptions options;
  options.max_unsent_bytes = 1 << 20;
  start(options);
  const RawAnswer answer = client().ask("GET /large-stream HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(answer.body.size(), size_t{8} << 20);
}

TEST_F(Transport, NoticesAClientThatLeavesItsStream) {
  start();
  for (const bool hard : {false, true}) {
    gone_ = 0;
    RawClient one = client();
    one.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(one.read(100).size(), 100u);
    hard ? one.reset() : one.close();
    EXPECT_TRUE(eventually([&] { return gone_ == 1; })) << hard;
  }
}

TEST_F(Transport, DisconnectsAClientThatDoesNotTakeItsStreamWhileOthersGoOn) {
  serve::TransportOptions options;
  options.max_unsent_bytes = 1 << 20;
  start(options);
  RawClient slow = client();
  slow.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
  RawClient other = client();
  while (gone_ == 0) ASSERT_EQ(other.ask(kGetHello).body, "hello");
  EXPECT_TRUE(slow.closed_within(std::chrono::seconds(10)));
  EXPECT_EQ(other.ask(kGetHello).body, "hello");
}

TEST_F(Transport, SendsAnAnswerThatIsLargerThanWhatAStreamMayHold) {
  start();
  EXPECT_EQ(client().ask("GET /large HTTP/1.1\r\nHost: a\r\n\r\n").body.size(), size_t{8} << 20);
}

TEST_F(Transport, DisconnectsAClientThatTakesNothingOfItsAnswer) {
  serve::TransportOptions options;
  options.stall_timeout = std::chrono::milliseconds(300);
  start(options);
  RawClient slow = client();
  slow.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return answered().size() == 1; }));
  EXPECT_EQ(transport_->counts().connections, 0);
  EXPECT_FALSE(answered()[0].whole);
  EXPECT_LT(slow.answer().body.size(), size_t{8} << 20);
}

TEST_F(Transport, GivesUpOnRequestsThatDoNotArrive) {
  serve::TransportOptions options;
  options.header_timeout = std::chrono::milliseconds(300);
  start(options);
  RawClient head = client();
  head.send("GET /hello HT");
  RawClient body = client();
  body.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel");
  EXPECT_EQ(head.answer().status, 408);
  EXPECT_EQ(body.answer().status, 408);
  EXPECT_TRUE(head.closed_within(std::chrono::seconds(5)));
  // One that goes on sending a byte at a time is no better.
  RawClient loris = client();
  loris.send("GET /hello HTTP/1.1\r\nX: ");
  for (int i = 0; i < 100 && loris.send("x"); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(eventually([&] { return transport_->counts().connections <= 1; }));
  expect_serves();
}

TEST_F(Transport, ClosesConnectionsThatAreIdle) {
  serve::TransportOptions options;
  options.idle_timeout = std::chrono::milliseconds(300);
  start(options);
  RawClient one = client();
  EXPECT_EQ(one.ask(kGetHello).body, "hello");
  EXPECT_TRUE(one.closed_within(std::chrono::seconds(5)));
}

TEST_F(Transport, GivesUpOnAnswersThatDoNotCome) {
  serve::TransportOptions options;
  options.answer_timeout = std::chrono::milliseconds(300);
  start(options);
  RawClient one = client();
  EXPECT_EQ(one.ask("GET /never HTTP/1.1\r\nHost: a\r\n\r\n").status, 504);
  EXPECT_EQ(gone_, 1);
  RawClient stream = client();
  stream.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(stream.closed_within(std::chrono::seconds(5)));
  EXPECT_TRUE(eventually([&] { return gone_ == 2; }));
}

TEST_F(Transport, ClosesWhenAnAnswerIsDropped) {
  start();
  RawClient one = client();
  EXPECT_EQ(one.ask("GET /drop HTTP/1.1\r\nHost: a\r\n\r\n").status, 0);
  EXPECT_TRUE(one.closed_within(std::chrono::seconds(5)));
  expect_serves();
}

TEST_F(Transport, RefusesConnectionsBeyondTheLimit) {
  serve::TransportOptions options;
  options.max_connections = 2;
  start(options);
  {
    RawClient one = client();
    RawClient two = client();
    EXPECT_EQ(one.ask(kGetHello).status, 200);
    EXPECT_EQ(two.ask(kGetHello).status, 200);
    RawClient three = client();
    const RawAnswer answer = three.answer();
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.headers.at("retry-after"), "1");
    EXPECT_TRUE(three.closed_within(std::chrono::seconds(5)));
    EXPECT_EQ(one.ask(kGetHello).status, 200);
  }
  EXPECT_TRUE(eventually([&] { return transport_->counts().connections == 0; }));
  expect_serves();
}

TEST_F(Transport, CarriesTwoThousandIdleConnections) {
  start();
  std::vector<RawClient> idle;
  for (int i = 0; i < 2000; ++i) {
    idle.push_back(client());
    ASSERT_TRUE(idle.back().send(kGetHello));
  }
  for (RawClient& each : idle) ASSERT_EQ(each.answer().body, "hello");
  EXPECT_EQ(transport_->counts().connections, 2000);
  expect_serves();
  EXPECT_EQ(idle.front().ask(kGetHello).body, "hello");
  EXPECT_EQ(idle.back().ask(kGetHello).body, "hello");
}

TEST_F(Transport, EndsWithTheAnswersThatAreUnderWay) {
  start();
  RawClient idle = client();
  EXPECT_EQ(idle.ask(kGetHello).body, "hello");
  RawClient busy = client();
  busy.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(busy.read(100).size(), 100u);
  transport_->drain();
  EXPECT_TRUE(idle.closed_within(std::chrono::seconds(5)));
  EXPECT_EQ(busy.read(100'000).size(), 100'000u);
  busy.close();
  runner_.join();
  EXPECT_EQ(gone_, 1);
}

}  // namespace
}  // namespace verbatim
