#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "serve/transport_fixture.h"

namespace verbatim {
namespace {

using test::kGetHello;
using test::RawAnswer;
using test::RawClient;

class Mutations : public test::Transported {};

/// How many mutations are tried: VERBATIM_MUTATIONS asks for more.
int mutations() {
  const char* const asked = std::getenv("VERBATIM_MUTATIONS");
  return asked ? std::atoi(asked) : 2000;
}

const std::vector<std::string> kRequests = {
    kGetHello,
    "POST /echo HTTP/1.1\r\nHost: localhost:8080\r\nContent-Type: application/json\r\nContent-Length: "
    "13\r\n\r\n"
    "{\"model\":\"x\"}",
    "POST /echo HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: "
    "chunked\r\n\r\n4\r\nabcd\r\n3;a=b\r\nefg\r\n0\r\nX: y\r\n\r\n",
    "GET http://localhost/stream?a=b#c HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: id\r\nConnection: "
    "close\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\nOrigin: null\r\n\r\nbody",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nHEAD /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
};

/// A request with a few of its bytes changed, removed, doubled, or replaced by a part of another request.
std::string mutated(std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  std::string text = kRequests[below(kRequests.size())];
  static const std::vector<std::string> pieces = {"\r\n",
                                                  "\n",
                                                  "\r",
                                                  "\r\n\r\n",
                                                  ": ",
                                                  std::string(1, '\0'),
                                                  "\xff",
                                                  "Content-Length: 99999999999999999999\r\n",
                                                  "-1",
                                                  "Host: b\r\n",
                                                  "Transfer-Encoding: chunked\r\n",
                                                  "ffffffff\r\n",
                                                  "%00",
                                                  "../"};
  for (size_t changes = 1 + below(4); changes > 0; --changes) {
    const size_t at = below(text.size());
    const size_t length = std::min(below(16) + 1, text.size() - at);
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(at, pieces[below(pieces.size())]);
        break;
      default: {
        const std::string& other = kRequests[below(kRequests.size())];
        text.replace(at, length, other.substr(below(other.size()), length));
      }
    }
    if (text.empty()) text = "x";
  }
  return text;
}

TEST_F(Mutations, OfRequestsAreAnsweredOrClosedAndTheNextRequestWorks) {
  serve::TransportOptions options;
  options.header_timeout = std::chrono::seconds(1);
  start(options);
  std::mt19937 random(1);
  int answers = 0;
  const int count = mutations();
  for (int i = 0; i < count; ++i) {
    const std::string request = mutated(random);
    RawClient one = client();
    one.send(request);
    one.end_sending();
    const std::string answer = one.read(13);
    answers += answer.empty() ? 0 : 1;
    if (!answer.empty()) {
      ASSERT_THAT(answer, ::testing::StartsWith("HTTP/1.1 ")) << i;
      ASSERT_TRUE(answer[9] == '1' || answer[9] == '2' || answer[9] == '4' || answer.substr(9, 3) == "501")
          << answer << " to " << ::testing::PrintToString(request);
    }
    if (i % 50 == 0) expect_serves();
  }
  expect_serves();
  EXPECT_GT(answers, count / 4);
  EXPECT_TRUE(test::eventually([&] { return transport_->counts().connections == 0; }));
}

}  // namespace
}  // namespace verbatim
