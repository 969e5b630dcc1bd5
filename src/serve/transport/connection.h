#pragma once

#include <boost/asio/io_context.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "serve/errors.h"
#include "serve/transport/answer_head.h"
#include "serve/transport/request_parser.h"
#include "serve/transport/transport.h"
#include "serve/transport/wire.h"

namespace verbatim::serve {

class Connection;

/// What the connections of a transport share. All but `context` and `hooks` belong to the transport's thread;
/// the counts are read by others.
struct Hub {
  TransportOptions options;
  TransportHooks hooks;
  boost::asio::io_context context{1};
  std::unique_ptr<boost::asio::ssl::context> tls = {};  ///< none: plain HTTP
  bool draining = false;
  /// Takes a connection that has closed out of the transport's list.
  std::function<void(Connection*)> closed = {};
  std::atomic<int64_t> bytes_read = 0;
  std::atomic<int64_t> bytes_written = 0;
};

/// The answer to one request as its connection and its exchange see it, guarded by the connection's mutex.
struct AnswerState {
  enum class Stage { kWaiting, kStreaming, kComplete };
  HttpRequest request;
  std::string method;  ///< as it was sent: a HEAD is answered as a GET without its body
  Stage stage = Stage::kWaiting;
  bool gone = false;
  bool head_only = false;      ///< the method was HEAD
  bool takes_remarks = false;  ///< a stream of events, in which remarks may stand between what is written
  bool speaks_1_1 = true;
  bool keep_alive = true;
  BodyEnd end = BodyEnd::kLength;
  int status = 0;
  int64_t bytes = 0;
  std::function<void()> on_gone = {};
};

/// One client's connection. It reads requests one after the other, hands each to the server when the answer
/// to the one before is sent, and writes what answers leave for it. It goes on reading while it waits for an
/// answer, to notice a client that leaves. It lives as long as it has something under way, or an exchange.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Hub> hub, std::unique_ptr<Wire> wire, std::string peer);

  /// Begins to read. `refused` answers with 503 instead and closes.
  void start(bool refused);
  /// Ends what is over its time, and asks whether a client that stopped sending is still there. Called ten
  /// times a second.
  void tick(std::chrono::steady_clock::time_point now);
  /// Has the connection close as soon as no answer is under way.
  void drain();
  /// Closes at once. The client of an answer that is under way is told to be gone.
  void close();

  // For exchanges, from any thread.
  void respond(AnswerState& answer, HttpResponse response);
  void begin_stream(AnswerState& answer, HttpResponse head);
  void write(AnswerState& answer, std::string_view chunk);
  void end(AnswerState& answer);
  void abandon(AnswerState& answer);
  bool gone(const AnswerState& answer) const;
  void on_gone(AnswerState& answer, std::function<void()> gone);

 private:
  using Clock = std::chrono::steady_clock;

  /// What the connection is about.
  enum class Phase {
    kOpening,    ///< TLS shakes hands
    kIdle,       ///< no byte of the next request is there
    kReading,    ///< a request arrives
    kAnswering,  ///< a request is being answered
    kLingering,  ///< the last answer was sent; what still arrives is thrown away, so that it is not lost
    kClosed,
  };

  void enter(Phase phase);
  void read();
  void took_in(const boost::system::error_code& error, size_t bytes);
  void parse();
  bool screen();
  /// Makes the state of an answer to what the parser has read.
  std::shared_ptr<AnswerState> take_request();
  void begin_answer();
  void refuse(int status, const std::string& message);
  void answer_now(HttpResponse response);
  void time_out_answer();
  void flush();
  void write_more();
  void sent(const boost::system::error_code& error, size_t bytes);
  void end_answer();
  void report(bool whole);
  void linger();
  void client_ended();
  void watch_for_reset();
  /// Adds bytes for the client and has them written. The mutex is held.
  void add(std::string_view bytes);
  /// Begins an answer's bytes with its head. The mutex is held.
  void add_head(AnswerState& answer, HttpResponse& response, int64_t length);
  void add_answer(AnswerState& answer, HttpResponse& response);
  /// Has flush() called on the transport's thread. The mutex is held.
  void schedule_flush();
  /// Has close() called on the transport's thread. The mutex is held.
  void schedule_close();

  const std::shared_ptr<Hub> hub_;
  const std::unique_ptr<Wire> wire_;
  const std::string peer_;

  // Of the transport's thread.
  Phase phase_ = Phase::kOpening;
  Clock::time_point deadline_;
  Clock::time_point answer_began_;
  Clock::time_point last_progress_;
  Clock::time_point next_probe_;  ///< of a client that stopped sending
  std::array<char, 4096> chunk_;
  std::string arrived_;  ///< bytes that were read and not yet parsed
  std::unique_ptr<RequestParser> parser_;
  std::shared_ptr<AnswerState> answer_;
  bool reading_ = false;
  bool client_ended_ = false;  ///< the client sends nothing more
  bool close_after_ = false;   ///< the answer that is under way is the last one
  std::string sending_;
  size_t sent_ = 0;
  bool writing_ = false;
  bool watching_ = false;  ///< for a reset of the connection

  mutable std::mutex mutex_;
  // Guarded by it, beside the answers.
  std::string unsent_;
  int64_t unsent_bytes_ = 0;  ///< with those of sending_
  bool flush_scheduled_ = false;
  bool closed_ = false;
};

}  // namespace verbatim::serve
