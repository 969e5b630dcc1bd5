#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace verbatim::test {

/// A server of HTTP for tests: answers each request, one after the other, with what a function makes of it,
/// and closes the connection.
class SmallServer {
 public:
  /// Gets the request's head and body, and a function that sends a piece of the answer.
  using Handler = std::function<void(const std::string& head, const std::string& body,
                                     const std::function<void(const std::string&)>& send)>;

  explicit SmallServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 64), 0);
    socklen_t size = sizeof(address);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { work(); });
  }
  ~SmallServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  SmallServer(const SmallServer&) = delete;
  SmallServer& operator=(const SmallServer&) = delete;

  std::string url(const std::string& path = "/") const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }

  /// A whole answer of a status and a type.
  static std::string answer(int status, const std::string& type, const std::string& body,
                            const std::string& headers = {}) {
    return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: " + type + "\r\n" + headers +
           "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
  }

 private:
  void work() {
    while (true) {
      const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      serve(client);
      close(client);
    }
  }

  void serve(int client) {
    std::string text;
    size_t end = std::string::npos;
    size_t length = 0;
    char buffer[4096];
    while (end == std::string::npos || text.size() < end + 4 + length) {
      const ssize_t count = recv(client, buffer, sizeof(buffer), 0);
      if (count <= 0) return;
      text.append(buffer, static_cast<size_t>(count));
      if (end == std::string::npos && (end = text.find("\r\n\r\n")) != std::string::npos) {
        const size_t at = text.find("Content-Length: ");
        if (at < end) length = std::stoul(text.substr(at + 16));
      }
    }
    handler_(text.substr(0, end), text.substr(end + 4), [client](const std::string& piece) {
      for (size_t sent = 0; sent < piece.size();) {
        const ssize_t count = send(client, piece.data() + sent, piece.size() - sent, MSG_NOSIGNAL);
        if (count <= 0) return;
        sent += static_cast<size_t>(count);
      }
    });
  }

  Handler handler_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace verbatim::test
