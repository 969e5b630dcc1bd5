#include "serve/raw_client.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace verbatim::test {

namespace {

constexpr int kPatience = 10'000;  // milliseconds

}  // namespace

RawClient::RawClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (socket_ < 0 || ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("cannot connect to the server under test");
  }
}

RawClient::~RawClient() {
  close();
}

RawClient::RawClient(RawClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), arrived_(std::move(other.arrived_)) {}

void RawClient::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd wait{.fd = socket_, .events = POLLOUT, .revents = 0};
    if (::poll(&wait, 1, kPatience) <= 0) return false;
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool RawClient::more() {
  pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, kPatience) <= 0) return false;
  char bytes[16384];
  const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
  if (got <= 0) return false;
  arrived_.append(bytes, static_cast<size_t>(got));
  return true;
}

std::string RawClient::read(size_t bytes) {
  while (arrived_.size() < bytes && more()) {
  }
  const std::string result = arrived_.substr(0, bytes);
  arrived_.erase(0, result.size());
  return result;
}

RawAnswer RawClient::answer(bool head_only) {
  RawAnswer answer;
  size_t end = 0;
  while ((end = arrived_.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return answer;
  }
  std::string head = arrived_.substr(0, end + 2);
  arrived_.erase(0, end + 4);
  const int status = std::stoi(head.substr(9, 3));
  if (status == 100) {
    answer = this->answer(head_only);
    ++answer.continues;
    return answer;
  }
  for (size_t at = head.find("\r\n") + 2; at < head.size();) {
    const size_t stop = head.find("\r\n", at);
    const size_t colon = head.find(": ", at);
    std::string name = head.substr(at, colon - at);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    answer.headers[name] = head.substr(colon + 2, stop - colon - 2);
    at = stop + 2;
  }
  if (head_only || status == 204 || status == 304) {
    // Nothing follows.
  } else if (answer.headers.contains("content-length")) {
    const size_t length = std::stoul(answer.headers["content-length"]);
    answer.body = read(length);
    if (answer.body.size() < length) return answer;
  } else if (answer.headers.contains("transfer-encoding")) {
    for (;;) {
      while (arrived_.find("\r\n") == std::string::npos) {
        if (!more()) return answer;
      }
      const size_t line = arrived_.find("\r\n");
      const size_t size = std::stoul(arrived_.substr(0, line), nullptr, 16);
      arrived_.erase(0, line + 2);
      const std::string chunk = read(size + 2);
      if (chunk.size() < size + 2) return answer;
      answer.body += chunk.substr(0, size);
      if (size == 0) break;
    }
  } else {
    while (more()) {
    }
    answer.body = std::exchange(arrived_, {});
  }
  answer.status = status;
  return answer;
}

RawAnswer RawClient::ask(std::string_view bytes) {
  if (!send(bytes)) return {};
  return answer();
}

bool RawClient::closed_within(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) return false;
    char bytes[16384];
    if (::recv(socket_, bytes, sizeof bytes, 0) <= 0) return true;
  }
}

void RawClient::end_sending() {
  ::shutdown(socket_, SHUT_WR);
}

void RawClient::reset() {
  const linger hard{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close();
}

}  // namespace verbatim::test
