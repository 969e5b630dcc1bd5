#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace verbatim::test {

/// An answer as it came over a connection.
struct RawAnswer {
  int status = 0;                              ///< 0: the connection ended before there was a whole one
  std::map<std::string, std::string> headers;  ///< by their names in small letters
  std::string body;
  int continues = 0;  ///< answers of status 100 before it
};

/// A connection to a port of this machine whose bytes a test sends itself. Waiting longer than ten seconds
/// ends it.
class RawClient {
 public:
  explicit RawClient(uint16_t port);
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// Sends all bytes; false if the connection does not take them.
  bool send(std::string_view bytes);
  /// Reads the next answer; one to a HEAD has no body.
  RawAnswer answer(bool head_only = false);
  /// Sends a request and reads its answer.
  RawAnswer ask(std::string_view bytes);
  /// Reads until there are so many bytes, or the end; returns what came.
  std::string read(size_t bytes);
  /// Whether the other side closes within a time, whatever it sends before.
  bool closed_within(std::chrono::milliseconds time);
  void end_sending();
  /// Closes so that the other side hears of a reset.
  void reset();
  void close();
  int socket() const { return socket_; }

 private:
  bool more();

  int socket_ = -1;
  std::string arrived_;
};

}  // namespace verbatim::test
