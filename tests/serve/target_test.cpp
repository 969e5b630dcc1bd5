#include "serve/target.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

using namespace serve;

TEST(Target, IsTakenApart) {
  const auto target = parse_target("/v1/models?limit=2&after=x?y");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/v1/models");
  EXPECT_EQ(target->query, "limit=2&after=x?y");
  EXPECT_EQ(target->authority, "");
  const auto absolute = parse_target("HTTP://Example.org:80/v1/models");
  ASSERT_TRUE(absolute);
  EXPECT_EQ(absolute->path, "/v1/models");
  EXPECT_EQ(absolute->authority, "Example.org:80");
  EXPECT_EQ(parse_target("http://example.org")->path, "/");
  EXPECT_EQ(parse_target("*")->path, "*");
}

TEST(Target, HasOnePathForOneThing) {
  for (const char* text : {"/v1/models", "/v1//models", "//v1/models/", "/v1/models#part", "/v1/models//?"}) {
    ASSERT_TRUE(parse_target(text)) << text;
    EXPECT_EQ(parse_target(text)->path, "/v1/models") << text;
  }
  EXPECT_EQ(parse_target("/")->path, "/");
  EXPECT_EQ(parse_target("///")->path, "/");
  EXPECT_EQ(parse_target("/v1/models/a%2Fb")->path, "/v1/models/a%2Fb");
}

TEST(Target, NeverClimbs) {
  for (const char* text : {"/..", "/../etc/passwd", "/a/./b", "/a/%2e%2e/b", "/a/.%2E", "/%2e"}) {
    EXPECT_FALSE(parse_target(text)) << text;
  }
  EXPECT_TRUE(parse_target("/..."));
  EXPECT_TRUE(parse_target("/a/..b?x=../.."));
}

TEST(Target, IsPrintable) {
  for (const char* text :
       {"", "v1/models", "/a b", "/a\tb", "/a\x7f", "/\xc3\xa9", "/a\\b", "http://", "ftp://a/"}) {
    EXPECT_FALSE(parse_target(text)) << text;
  }
}

TEST(Host, IsReadWithoutItsPort) {
  EXPECT_EQ(host_of("LocalHost:8080"), "localhost");
  EXPECT_EQ(host_of("[::1]:8080"), "[::1]");
  EXPECT_EQ(host_of("127.0.0.1"), "127.0.0.1");
  for (const char* text : {"a:b", "a:1:2", "[::1", "[::1]x", "a b", "a/b", "user@a", "a:123456"}) {
    EXPECT_EQ(host_of(text), "") << text;
  }
}

TEST(Host, IsOfThisMachineByFewNames) {
  for (const char* host : {"localhost", "127.0.0.1", "[::1]", "localhost.", "x.localhost"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
  for (const char* host :
       {"", "localhost.example.org", "127.0.0.1.example.org", "evil-localhost", "0.0.0.0"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

TEST(Origin, IsTheSameOnlyForTheSameHostAndPort) {
  EXPECT_TRUE(same_origin("http://localhost:8080", "localhost:8080"));
  EXPECT_TRUE(same_origin("http://LOCALHOST", "localhost:80"));
  EXPECT_TRUE(same_origin("https://example.org", "example.org"));
  EXPECT_FALSE(same_origin("http://localhost:8081", "localhost:8080"));
  EXPECT_FALSE(same_origin("http://localhost.example.org", "localhost"));
  EXPECT_FALSE(same_origin("null", "null"));
  EXPECT_FALSE(same_origin("http://", ""));
}

TEST(RequestId, IsSaneOrNone) {
  EXPECT_TRUE(is_request_id("a-B_7.x:y"));
  for (const char* text : {"", "a b", "a\r\nSet-Cookie: x", "\xc3\xa9"}) EXPECT_FALSE(is_request_id(text));
  EXPECT_TRUE(is_request_id(std::string(128, 'x')));
  EXPECT_FALSE(is_request_id(std::string(129, 'x')));
}

}  // namespace
}  // namespace verbatim
