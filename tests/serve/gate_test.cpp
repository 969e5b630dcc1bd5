#include "serve/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace verbatim {
namespace {

using serve::Gate;
using serve::HttpRequest;
using serve::HttpResponse;
using ::testing::HasSubstr;

using Headers = std::vector<std::pair<std::string, std::string>>;

HttpRequest request(const std::string& path, Headers headers, const std::string& method = "POST") {
  return {.method = method,
          .path = path,
          .query = {},
          .headers = std::move(headers),
          .body = {},
          .peer = {},
          .id = {}};
}

/// The status that a gate answers with; 0 if it lets the request pass.
int screened(const Gate& gate, const HttpRequest& one) {
  const auto response = gate.screen(one);
  return response ? response->status : 0;
}

std::string header_of(const HttpResponse& response, const std::string& name) {
  for (const auto& [each, value] : response.headers) {
    if (each == name) return value;
  }
  return {};
}

TEST(Keys, LetRequestsPass) {
  ServerOptions options;
  options.api_keys = {"first-key", "second-key"};
  const Gate gate(options);
  for (const Headers& headers :
       {Headers{{"Authorization", "Bearer first-key"}}, Headers{{"authorization", "bearer  second-key"}},
        Headers{{"X-Api-Key", "second-key"}},
        Headers{{"Authorization", "Bearer unused"}, {"x-api-key", "first-key"}}}) {
    EXPECT_EQ(screened(gate, request("/v1/models", headers)), 0) << headers[0].second;
  }
  for (const Headers& headers :
       {Headers{}, Headers{{"Authorization", "first-key"}}, Headers{{"Authorization", "Bearer first-ke"}},
        Headers{{"Authorization", "Bearer first-key2"}}, Headers{{"Authorization", "Bearer "}},
        Headers{{"Authorization", "Basic first-key"}}, Headers{{"x-api-key", ""}},
        Headers{{"x-api-key", "first-key,second-key"}}}) {
    EXPECT_EQ(screened(gate, request("/v1/models", headers)), 401);
    EXPECT_EQ(screened(gate, request("/metrics", headers, "GET")), 401);
    EXPECT_EQ(screened(gate, request("/health/x", headers, "GET")), 401);
  }
}

TEST(Keys, AreNotAskedForThePageAndForHealth) {
  ServerOptions options;
  options.api_keys = {"key"};
  const Gate gate(options);
  EXPECT_EQ(screened(gate, request("/", {}, "GET")), 0);
  EXPECT_EQ(screened(gate, request("/health", {}, "GET")), 0);
}

TEST(Keys, AreMissedInTheShapeOfTheInterface) {
  ServerOptions options;
  options.api_keys = {"key"};
  const Gate gate(options);
  const auto open_ai =
      nlohmann::json::parse(gate.screen(request("/v1/chat/completions", {{"x-api-key", "no"}}))->body);
  EXPECT_EQ(open_ai["error"]["type"], "invalid_request_error");
  EXPECT_EQ(open_ai["error"]["code"], "invalid_api_key");
  const auto anthropic = nlohmann::json::parse(gate.screen(request("/v1/messages", {}))->body);
  EXPECT_EQ(anthropic["type"], "error");
  EXPECT_EQ(anthropic["error"]["type"], "authentication_error");
  EXPECT_EQ(header_of(*gate.screen(request("/v1/models", {})), "WWW-Authenticate"), "Bearer");
}

TEST(Rebinding, IsRefusedOnTheLoopbackAddressWithoutKeys) {
  const Gate gate(ServerOptions{});
  for (const char* host : {"localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST"}) {
    EXPECT_EQ(screened(gate, request("/v1/models", {{"Host", host}})), 0) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example:8080", "10.0.0.1:8080", "a b"}) {
    EXPECT_EQ(screened(gate, request("/v1/models", {{"Host", host}})), 403) << host;
    EXPECT_EQ(screened(gate, request("/", {{"Host", host}}, "GET")), 403) << host;
  }
  ServerOptions with_keys;
  with_keys.api_keys = {"key"};
  EXPECT_EQ(screened(Gate(with_keys), request("/health", {{"Host", "verbatim.example"}})), 0);
  ServerOptions elsewhere;
  elsewhere.host = "0.0.0.0";
  EXPECT_EQ(screened(Gate(elsewhere), request("/v1/models", {{"Host", "verbatim.example"}})), 0);
}

TEST(Origins, OfOtherPagesAreRefusedWithoutKeys) {
  const Gate gate(ServerOptions{});
  const auto from = [&](const std::string& origin) {
    return screened(gate, request("/v1/models", {{"Host", "localhost:8080"}, {"Origin", origin}}));
  };
  EXPECT_EQ(from("http://localhost:8080"), 0);
  EXPECT_EQ(from("http://localhost:3000"), 403);
  EXPECT_EQ(from("https://evil.example"), 403);
  EXPECT_EQ(from("null"), 403);
}

TEST(Origins, ThatAreNamedMayReadAnswers) {
  ServerOptions options;
  options.cors_origins = {"https://chat.example"};
  const Gate gate(options);
  const HttpRequest good = request("/v1/models", {{"Host", "localhost"}, {"Origin", "https://chat.example"}});
  EXPECT_EQ(screened(gate, good), 0);
  HttpResponse response;
  gate.decorate(good, response);
  EXPECT_EQ(header_of(response, "Access-Control-Allow-Origin"), "https://chat.example");
  EXPECT_EQ(header_of(response, "Vary"), "Origin");
  EXPECT_THAT(header_of(response, "Access-Control-Expose-Headers"), HasSubstr("x-request-id"));

  const HttpRequest other =
      request("/v1/models", {{"Host", "localhost"}, {"Origin", "https://chat.example.evil"}});
  EXPECT_EQ(screened(gate, other), 403);
  HttpResponse bare;
  gate.decorate(other, bare);
  EXPECT_EQ(header_of(bare, "Access-Control-Allow-Origin"), "");
}

TEST(Origins, AreNotSpokenOfUnlessAsked) {
  HttpResponse response;
  Gate(ServerOptions{}).decorate(request("/", {{"Origin", "https://chat.example"}}), response);
  EXPECT_TRUE(response.headers.empty());
}

TEST(Origins, AskBeforeARequestWithoutAKey) {
  ServerOptions options;
  options.cors_origins = {"*"};
  options.api_keys = {"key"};
  const Gate gate(options);
  const auto ask = [&](const std::string& wanted) {
    return gate.screen(request("/v1/messages",
                               {{"Host", "localhost"},
                                {"Origin", "https://any.example"},
                                {"Access-Control-Request-Method", "POST"},
                                {"Access-Control-Request-Headers", wanted}},
                               "OPTIONS"));
  };
  const auto response = ask("x-stainless-os, authorization");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 204);
  const std::string allowed = header_of(*response, "Access-Control-Allow-Headers");
  for (const char* name :
       {"authorization", "x-api-key", "content-type", "anthropic-version", "x-stainless-os"}) {
    EXPECT_THAT(allowed, HasSubstr(name));
  }
  EXPECT_THAT(header_of(*response, "Access-Control-Allow-Methods"), HasSubstr("POST"));
  EXPECT_EQ(header_of(*ask("x\r\nSet-Cookie: a"), "Access-Control-Allow-Headers").find("Set-Cookie"),
            std::string::npos);
  EXPECT_EQ(screened(gate, request("/v1/messages", {{"Origin", "https://any.example"}}, "OPTIONS")), 401);
}

TEST(Keys, AreMissedWithTheRequestsName) {
  ServerOptions options;
  options.api_keys = {"secret-key"};
  HttpRequest one = request("/v1/messages", {});
  one.id = "id-7";
  const auto refused = Gate(options).screen(one);
  ASSERT_TRUE(refused);
  EXPECT_EQ(header_of(*refused, "request-id"), "id-7");
  EXPECT_EQ(nlohmann::json::parse(refused->body)["request_id"], "id-7");
}

}  // namespace
}  // namespace verbatim
