#ifdef VERBATIM_SERVER

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/run_program.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::expect_refused;

TEST(Serve, SaysWhatIsWrongWithItsOptions) {
  expect_refused({"serve"}, 2, {"a model is missing"});
  expect_refused({"serve", "x", "--port", "70000"}, 2, {"--port"});
  expect_refused({"serve", "--model", "x"}, 2, {"NAME=PATH"});
  expect_refused({"serve", "--model", "=x"}, 2, {"NAME=PATH"});
  expect_refused({"serve", "a/x.gguf", "b/x.vbt"}, 2, {"two models have the name \"x\""});
  expect_refused({"serve", "x", "--tls-cert", "c.pem"}, 2, {"a certificate and its key"});
  expect_refused({"serve", "x", "--grace", "-1"}, 2, {"--grace"});
}

TEST(Serve, ReadsKeysFromAFile) {
  test::TemporaryFolder folder;
  const std::string file = (folder.path() / "keys").string();
  expect_refused({"serve", "x", "--api-key-file", file}, 1, {file});
  folder.write("keys", "# none yet\n\n");
  expect_refused({"serve", "x", "--api-key-file", file}, 1, {file, "no key is in it"});
  folder.write("keys", "one two\n");
  expect_refused({"serve", "x", "--api-key-file", file}, 1, {file, "more than a key"});
}

#ifdef VERBATIM_WITH_AGENT
TEST(Serve, RefusesFilesOfServersOfToolsThatAreNone) {
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "servers.json").string();
  expect_refused({"serve", "x", "--mcp", file}, 1, {file});
  folder.write("servers.json", R"({"mcpServers": {}})");
  expect_refused({"serve", "x", "--mcp", file}, 1, {file, "no server is named"});
  folder.write("servers.json", R"({"mcpServers": {"s": {"command": "/no/such/server"}}})");
  expect_refused({"serve", "x", "--mcp", file}, 1, {"the server of tools `s`: cannot start /no/such/server"});
  expect_refused({"serve", "x", "--mcp", file, "--mcp-rounds", "0"}, 2, {"--mcp-rounds"});
}
#endif

TEST(Serve, SaysThatAPortIsTakenBeforeItLoadsAModel) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(socket, 1), 0);
  ASSERT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  expect_refused({"serve", "/no/model", "--port", port}, 3,
                 {"127.0.0.1", port, "another program listens there"});
  ::close(socket);
}

}  // namespace
}  // namespace verbatim

#endif
