#include "serve/front.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <mutex>
#include <thread>

#include "serve/page.h"
#include "serve/raw_client.h"
#include "serve/transport_fixture.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using test::eventually;
using test::RawAnswer;
using test::RawClient;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// A front before a backend that answers with the request's path, except /slow, which it keeps until it is
/// cancelled or told to answer.
class Front : public ::testing::Test {
 protected:
  void start(ServerOptions options = {}) {
    options.port = 0;
    options.models = {{.name = "none", .path = "none"}};
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_.push_back(line);
    };
    serve::Backend backend;
    backend.handle = [this](std::shared_ptr<serve::HttpExchange> exchange) {
      if (exchange->request().path == "/slow") {
        const std::lock_guard lock(mutex_);
        slow_.push_back(std::move(exchange));
        return;
      }
      exchange->respond({.content_type = "text/plain", .body = exchange->request().path});
    };
    backend.drain = [this] { ++drained_; };
    backend.cancel_all = [this] {
      ++cancelled_;
      answer_slow("cancelled");
    };
    backend.metrics = [] { return std::string("backend_metric 1\n"); };
    front_ = std::make_unique<serve::Front>(options, backend);
    runner_ = std::thread([this] {
      front_->run();
      ended_ = true;
    });
  }

  void TearDown() override {
    if (!front_) return;
    front_->stop();
    front_->stop();
    if (runner_.joinable()) runner_.join();
    slow_.clear();
  }

  void answer_slow(const std::string& body) {
    std::vector<std::shared_ptr<serve::HttpExchange>> slow;
    {
      const std::lock_guard lock(mutex_);
      slow.swap(slow_);
    }
    for (const auto& exchange : slow) exchange->respond({.body = body});
  }

  RawClient client() { return RawClient(front_->port()); }
  RawAnswer get(const std::string& path, const std::string& headers = {}) {
    return client().ask("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  }
  RawClient ask_slowly() {
    RawClient one = client();
    one.send("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex_);
      return slow_.size() == 1;
    }));
    return one;
  }
  std::vector<std::string> log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  std::unique_ptr<serve::Front> front_;
  std::thread runner_;
  std::atomic<bool> ended_ = false;
  std::atomic<int> drained_ = 0;
  std::atomic<int> cancelled_ = 0;

 private:
  std::mutex mutex_;
  std::vector<std::string> log_;
  std::vector<std::shared_ptr<serve::HttpExchange>> slow_;
};

TEST_F(Front, ServesThePagesFiles) {
  start();
  const RawAnswer page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.body, HasSubstr("<!doctype html>"));
  EXPECT_THAT(page.headers.at("content-security-policy"), HasSubstr("default-src 'self'"));
  EXPECT_EQ(page.headers.at("x-content-type-options"), "nosniff");
  const RawAnswer again = get("/", "If-None-Match: " + page.headers.at("etag") + "\r\n");
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  for (const serve::PageFile& file : serve::page_files()) {
    EXPECT_EQ(get(std::string(file.path)).body, file.content) << file.path;
  }
  const RawAnswer written = client().ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(written.status, 405);
  EXPECT_EQ(written.headers.at("allow"), "GET, HEAD");
  EXPECT_EQ(get("/index.html").body, "/index.html");  // of the backend
}

TEST_F(Front, AsksForAKeyBeforeItTakesABody) {
  ServerOptions options;
  options.api_keys = {"secret-key"};
  start(options);
  RawClient one = client();
  const RawAnswer answer = one.ask(
      "POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.continues, 0);
  EXPECT_THAT(answer.body, HasSubstr("authentication_error"));
  EXPECT_EQ(get("/v1/models").status, 401);
  EXPECT_EQ(get("/v1/models", "Authorization: Bearer secret-key\r\n").status, 200);
  EXPECT_EQ(get("/metrics").status, 401);
  EXPECT_EQ(get("/health").status, 200);
}

TEST_F(Front, TellsItsMetrics) {
  start();
  get("/v1/models/some-name");
  get("/v1/models/another");
  get("/nowhere/1");
  client().ask("hello\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return get("/metrics").body.find("status=\"400\"") != std::string::npos; }));
  const RawAnswer metrics = get("/metrics");
  EXPECT_THAT(metrics.headers.at("content-type"), HasSubstr("text/plain; version=0.0.4"));
  for (const char* part :
       {"verbatim_http_requests_total{method=\"GET\",path=\"/v1/models/{model}\",status=\"200\"} 2",
        "path=\"other\"", "verbatim_http_request_seconds_bucket{", "verbatim_http_connections 1",
        "verbatim_http_sent_bytes_total", "backend_metric 1"}) {
    EXPECT_THAT(metrics.body, HasSubstr(part));
  }
  EXPECT_THAT(metrics.body, AllOf(Not(HasSubstr("some-name")), Not(HasSubstr("nowhere"))));
}

TEST_F(Front, LogsRequestsWithoutTheirSecrets) {
  ServerOptions options;
  options.api_keys = {"secret-key"};
  start(options);
  client().ask(
      "POST /v1/completions?token=secret-query HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret-key\r\n"
      "X-Request-Id: id-7\r\nContent-Length: 11\r\n\r\nsecret-body");
  client().ask("GET /v1/models HTTP/1.1\r\nHost: a\r\nx-api-key: secret-guess\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return log().size() == 2; }));
  EXPECT_THAT(log()[0], AllOf(HasSubstr("127.0.0.1 POST /v1/completions 200 15B"), HasSubstr("id-7")));
  EXPECT_THAT(log()[1], HasSubstr("GET /v1/models 401"));
  for (const std::string& line : log())
    EXPECT_THAT(line, AllOf(Not(HasSubstr("secret")), Not(HasSubstr("\n"))));
}

TEST_F(Front, LogsJsonIfAsked) {
  ServerOptions options;
  options.json_log = true;
  start(options);
  get("/v1/models", "X-Request-Id: id-7\r\n");
  ASSERT_TRUE(eventually([&] { return log().size() == 1; }));
  const auto line = nlohmann::json::parse(log()[0]);
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["method"], "GET");
  EXPECT_EQ(line["path"], "/v1/models");
  EXPECT_EQ(line["status"], 200);
  EXPECT_EQ(line["id"], "id-7");
  front_->log().say("warning", "a \"quoted\"\nmessage");
  ASSERT_EQ(log().size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(log()[1])["message"], "a \"quoted\" message");
}

TEST_F(Front, LogsNoRequestsIfNotAsked) {
  ServerOptions options;
  options.access_log = false;
  start(options);
  get("/v1/models");
  front_->log().say("info", "a message");
  EXPECT_THAT(log(), ElementsAre(HasSubstr("a message")));
}

TEST_F(Front, LetsRunningAnswersEnd) {
  start();
  RawClient slow = ask_slowly();
  RawClient begun = client();
  begun.send("GET /v1/mod");
  ASSERT_TRUE(eventually([&] { return get("/metrics").body.find("connections 3") != std::string::npos; }));
  front_->stop();
  EXPECT_EQ(drained_, 1);
  const RawAnswer refused = begun.ask("els HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("connection"), "close");
  EXPECT_FALSE(ended_);
  answer_slow("done");
  EXPECT_EQ(slow.answer().body, "done");
  EXPECT_TRUE(eventually([&] { return ended_.load(); }));
  EXPECT_EQ(cancelled_, 0);
}

TEST_F(Front, CutsAnswersOffAfterTheGraceTime) {
  ServerOptions options;
  options.grace = std::chrono::seconds(0);
  start(options);
  RawClient slow = ask_slowly();
  front_->stop();
  EXPECT_EQ(slow.answer().body, "cancelled");
  EXPECT_TRUE(eventually([&] { return ended_.load(); }));
  EXPECT_EQ(cancelled_, 1);
}

TEST_F(Front, CutsAnswersOffAtOnceWhenToldTwice) {
  ServerOptions options;
  options.grace = std::chrono::seconds(3600);
  start(options);
  RawClient slow = ask_slowly();
  front_->stop();
  front_->stop();
  EXPECT_TRUE(eventually([&] { return ended_.load(); }));
  EXPECT_EQ(cancelled_, 1);
}

TEST(FrontOptions, AreCheckedBeforeAnythingIsOpened) {
  const auto refused = [](auto change) {
    ServerOptions options;
    options.port = 0;
    options.models = {{.name = "none", .path = "none"}};
    change(options);
    try {
      serve::Front front(options, {});
    } catch (const Error& error) {
      return std::to_string(static_cast<int>(error.kind())) + " " + error.what();
    }
    return std::string("nothing");
  };
  EXPECT_THAT(refused([](ServerOptions& o) { o.models.clear(); }), HasSubstr("2 "));
  EXPECT_THAT(refused([](ServerOptions& o) { o.tls_certificate = "x"; }), HasSubstr("2 "));
  EXPECT_THAT(refused([](ServerOptions& o) { o.header_timeout = {}; }), HasSubstr("2 "));
  EXPECT_THAT(refused([](ServerOptions& o) { o.api_keys = {""}; }), HasSubstr("2 "));
  EXPECT_THAT(refused([](ServerOptions& o) { o.tls_certificate = o.tls_key = "/nowhere.pem"; }),
              HasSubstr("1 /nowhere.pem: "));
  EXPECT_THAT(refused([](ServerOptions& o) { o.host = "no.such.host.invalid"; }), HasSubstr("3 "));
  ServerOptions first;
  first.port = 0;
  first.models = {{.name = "none", .path = "none"}};
  const serve::Front front(first, {});
  EXPECT_THAT(refused([&](ServerOptions& o) { o.port = front.port(); }),
              AllOf(HasSubstr("3 "), HasSubstr("another program listens there")));
}

TEST_F(Front, NamesTheRequestsOfAnthropicsClientsThatItCannotRead) {
  start();
  const RawAnswer answer = client().ask(
      "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: id-7\r\nContent-Length: "
      "999999999\r\n\r\n");
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.headers.at("request-id"), answer.headers.at("x-request-id"));
  EXPECT_THAT(answer.body, HasSubstr("\"request_id\":\"" + answer.headers.at("request-id")));
}

}  // namespace
}  // namespace verbatim
