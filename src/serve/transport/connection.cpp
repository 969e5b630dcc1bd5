#include "serve/transport/connection.h"

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "serve/transport/exchange.h"
#include "serve/transport/request_id.h"

namespace verbatim::serve {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

/// Requests that a client sends ahead wait here up to this size, and then in the system.
constexpr size_t kMostAhead = 64 << 10;
/// A client that stopped sending is asked so long after whether it still receives, and again so long after.
constexpr std::chrono::milliseconds kFirstProbe{50};
constexpr std::chrono::milliseconds kNextProbe{1000};
/// An answer before the answer, which clients pass over. A system whose client has left replies with a reset.
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
// A remark in a stream of events, which clients pass over.
constexpr std::string_view kRemark = ":\n\n";

}  // namespace

Connection::Connection(std::shared_ptr<Hub> hub, std::unique_ptr<Wire> wire, std::string peer)
    : hub_(std::move(hub)), wire_(std::move(wire)), peer_(std::move(peer)) {}

void Connection::enter(Phase phase) {
  phase_ = phase;
  const TransportOptions& options = hub_->options;
  const auto time = [&]() -> std::chrono::milliseconds {
    switch (phase) {
      case Phase::kIdle:
        return options.idle_timeout;
      case Phase::kAnswering:
        return options.answer_timeout;
      case Phase::kLingering:
        return options.linger_timeout;
      default:
        return options.header_timeout;
    }
  }();
  deadline_ = Clock::now() + time;
}

void Connection::start(bool refused) {
  enter(Phase::kOpening);
  wire_->open([self = shared_from_this(), refused](const error_code& error) {
    if (self->phase_ != Phase::kOpening) return;
    if (error) return self->close();
    self->enter(Phase::kIdle);
    if (refused) return self->refuse(503, "the server has as many connections as it may; try again later");
    self->read();
  });
}

void Connection::read() {
  if (reading_ || client_ended_ || phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kAnswering && arrived_.size() >= kMostAhead) {
    next_probe_ = Clock::now() + kNextProbe;
    return watch_for_reset();
  }
  reading_ = true;
  wire_->read_some(asio::buffer(chunk_), [self = shared_from_this()](const error_code& error, size_t bytes) {
    self->took_in(error, bytes);
  });
}

void Connection::took_in(const error_code& error, size_t bytes) {
  reading_ = false;
  if (phase_ == Phase::kClosed) return;
  hub_->bytes_read += static_cast<int64_t>(bytes);
  if (error == asio::error::eof) return client_ended();
  if (error) return close();
  if (phase_ != Phase::kLingering) arrived_.append(chunk_.data(), bytes);
  parse();
  read();
}

void Connection::parse() {
  while (phase_ == Phase::kIdle || phase_ == Phase::kReading) {
    if (phase_ == Phase::kIdle) {
      arrived_.erase(0, std::min(arrived_.find_first_not_of("\r\n"), arrived_.size()));
      if (arrived_.empty()) return;
      parser_ = std::make_unique<RequestParser>(hub_->options.request);
      enter(Phase::kReading);
    }
    arrived_.erase(0, parser_->take_in(arrived_));
    switch (parser_->state()) {
      case RequestParser::State::kHead:
      case RequestParser::State::kBody:
        return;
      case RequestParser::State::kHeadDone:
        if (!screen()) return;
        break;
      case RequestParser::State::kBad:
        return refuse(parser_->status(), parser_->problem());
      case RequestParser::State::kDone:
        return begin_answer();
    }
  }
}

bool Connection::screen() {
  HttpRequest& request = parser_->request();
  request.peer = peer_;
  request.id = request_id(request.header("x-request-id"));
  if (hub_->hooks.screen) {
    if (auto response = hub_->hooks.screen(request)) {
      // A body that nobody wants could be long.
      close_after_ = close_after_ || parser_->has_body();
      answer_now(std::move(*response));
      return false;
    }
  }
  if (parser_->expects_continue() && arrived_.empty()) {
    const std::lock_guard lock(mutex_);
    add(kContinue);
  }
  return true;
}

std::shared_ptr<AnswerState> Connection::take_request() {
  auto answer = std::make_shared<AnswerState>();
  answer->keep_alive = false;
  if (parser_) {
    answer->speaks_1_1 = parser_->speaks_1_1();
    answer->keep_alive = parser_->keep_alive() && !close_after_ && !hub_->draining;
    answer->request = std::move(parser_->request());
    answer->method = answer->request.method;
    answer->head_only = answer->method == "HEAD";
    if (answer->head_only) answer->request.method = "GET";
  }
  if (answer->request.id.empty()) answer->request.id = request_id({});
  answer->request.peer = peer_;
  parser_.reset();
  answer_ = answer;
  answer_began_ = Clock::now();
  enter(Phase::kAnswering);
  return answer;
}

void Connection::begin_answer() {
  const auto answer = take_request();
  hub_->hooks.handle(std::make_shared<Exchange>(shared_from_this(), answer));
}

void Connection::refuse(int status, const std::string& message) {
  close_after_ = true;
  const HttpError error(status, message);  // before the parser goes, which may hold the message
  const auto answer = take_request();
  const HttpRequest& request = answer->request;
  respond(*answer, error_response(dialect_of(request.path), error, request.id));
}

void Connection::answer_now(HttpResponse response) {
  const auto answer = take_request();
  respond(*answer, std::move(response));
}

void Connection::add(std::string_view bytes) {
  if (closed_) return;
  unsent_ += bytes;
  unsent_bytes_ += static_cast<int64_t>(bytes.size());
  schedule_flush();
}

void Connection::schedule_flush() {
  if (flush_scheduled_ || closed_) return;
  flush_scheduled_ = true;
  asio::post(hub_->context, [self = shared_from_this()] { self->flush(); });
}

void Connection::schedule_close() {
  if (closed_) return;
  asio::post(hub_->context, [self = shared_from_this()] { self->close(); });
}

void Connection::add_head(AnswerState& answer, HttpResponse& response, int64_t length) {
  if (hub_->hooks.decorate) hub_->hooks.decorate(answer.request, response);
  answer.status = response.status;
  if (answer.end == BodyEnd::kClose) answer.keep_alive = false;
  add(answer_head(response, answer.request, answer.end, length, answer.keep_alive));
}

void Connection::add_answer(AnswerState& answer, HttpResponse& response) {
  answer.stage = AnswerState::Stage::kComplete;
  answer.end = BodyEnd::kLength;
  add_head(answer, response, static_cast<int64_t>(response.body.size()));
  const bool bodiless = answer.head_only || response.status == 204 || response.status == 304;
  if (bodiless) return;
  add(response.body);
  answer.bytes += static_cast<int64_t>(response.body.size());
}

void Connection::respond(AnswerState& answer, HttpResponse response) {
  std::function<void()> dropped;  // outside of the mutex: it may hold the last exchange
  const std::lock_guard lock(mutex_);
  if (answer.stage != AnswerState::Stage::kWaiting || answer.gone) return;
  dropped.swap(answer.on_gone);
  add_answer(answer, response);
}

void Connection::begin_stream(AnswerState& answer, HttpResponse head) {
  const std::lock_guard lock(mutex_);
  if (answer.stage != AnswerState::Stage::kWaiting || answer.gone) return;
  answer.stage = AnswerState::Stage::kStreaming;
  answer.takes_remarks = head.content_type.starts_with("text/event-stream") && !answer.head_only;
  answer.end = answer.speaks_1_1 ? BodyEnd::kChunks : BodyEnd::kClose;
  add_head(answer, head, 0);
}

void Connection::write(AnswerState& answer, std::string_view chunk) {
  const std::lock_guard lock(mutex_);
  if (answer.stage != AnswerState::Stage::kStreaming || answer.gone || answer.head_only || chunk.empty())
    return;
  // What is added now does not count: one large chunk tells nothing of how fast the client reads.
  if (unsent_bytes_ > hub_->options.max_unsent_bytes) {
    answer.gone = true;
    return schedule_close();
  }
  answer.bytes += static_cast<int64_t>(chunk.size());
  answer.end == BodyEnd::kChunks ? add(body_chunk(chunk)) : add(chunk);
}

void Connection::end(AnswerState& answer) {
  std::function<void()> dropped;
  const std::lock_guard lock(mutex_);
  if (answer.stage != AnswerState::Stage::kStreaming || answer.gone) return;
  dropped.swap(answer.on_gone);
  answer.stage = AnswerState::Stage::kComplete;
  if (answer.end == BodyEnd::kChunks && !answer.head_only) add("0\r\n\r\n");
  schedule_flush();
}

void Connection::abandon(AnswerState& answer) {
  std::function<void()> dropped;
  const std::lock_guard lock(mutex_);
  // One that is gone already is still to be told so by close().
  if (answer.stage == AnswerState::Stage::kComplete || answer.gone) return;
  dropped.swap(answer.on_gone);
  answer.gone = true;
  schedule_close();
}

bool Connection::gone(const AnswerState& answer) const {
  const std::lock_guard lock(mutex_);
  return answer.gone;
}

void Connection::on_gone(AnswerState& answer, std::function<void()> gone) {
  {
    const std::lock_guard lock(mutex_);
    if (!answer.gone) {
      if (answer.stage != AnswerState::Stage::kComplete) answer.on_gone = std::move(gone);
      return;
    }
  }
  gone();
}

void Connection::flush() {
  std::unique_lock lock(mutex_);
  flush_scheduled_ = false;
  if (closed_ || writing_) return;
  if (unsent_.empty()) {
    const bool complete = answer_ && answer_->stage == AnswerState::Stage::kComplete;
    lock.unlock();
    if (complete) end_answer();
    return;
  }
  std::swap(sending_, unsent_);
  unsent_.clear();
  lock.unlock();
  sent_ = 0;
  writing_ = true;
  last_progress_ = Clock::now();
  write_more();
}

void Connection::write_more() {
  wire_->write_some(
      asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
      [self = shared_from_this()](const error_code& error, size_t bytes) { self->sent(error, bytes); });
}

void Connection::sent(const error_code& error, size_t bytes) {
  if (phase_ == Phase::kClosed) return;
  if (error) return close();
  hub_->bytes_written += static_cast<int64_t>(bytes);
  last_progress_ = Clock::now();
  sent_ += bytes;
  {
    const std::lock_guard lock(mutex_);
    unsent_bytes_ -= static_cast<int64_t>(bytes);
  }
  if (sent_ < sending_.size()) return write_more();
  sending_.clear();
  writing_ = false;
  flush();
}

void Connection::end_answer() {
  report(true);
  bool keep_alive = false;
  {
    const std::lock_guard lock(mutex_);
    keep_alive = answer_->keep_alive && !close_after_ && !hub_->draining;
    // An idle connection keeps no memory for answers.
    unsent_ = {};
  }
  sending_ = {};
  answer_.reset();
  if (!keep_alive) return linger();
  enter(Phase::kIdle);
  parse();
  if (client_ended_ && (phase_ == Phase::kIdle || phase_ == Phase::kReading)) return close();
  read();
}

void Connection::report(bool whole) {
  if (!answer_ || !hub_->hooks.answered) return;
  AnsweredRequest record;
  {
    const std::lock_guard lock(mutex_);
    record = {.method = answer_->method,
              .path = answer_->request.path,
              .id = answer_->request.id,
              .peer = peer_,
              .status = answer_->status,
              .whole = whole,
              .bytes = answer_->bytes};
  }
  record.seconds = std::chrono::duration<double>(Clock::now() - answer_began_).count();
  hub_->hooks.answered(record);
}

void Connection::linger() {
  if (client_ended_) return close();
  enter(Phase::kLingering);
  arrived_ = {};
  wire_->end_sending([self = shared_from_this()] {});
  read();
}

void Connection::client_ended() {
  client_ended_ = true;
  if (phase_ != Phase::kAnswering || !wire_->half_closes()) return close();
  next_probe_ = Clock::now() + kFirstProbe;
  watch_for_reset();
}

void Connection::watch_for_reset() {
  if (watching_) return;
  watching_ = true;
  wire_->socket().async_wait(asio::ip::tcp::socket::wait_error,
                             [self = shared_from_this()](const error_code& error) {
                               self->watching_ = false;
                               if (!error) self->close();
                             });
}

void Connection::tick(Clock::time_point now) {
  if (phase_ == Phase::kClosed) return;
  if (writing_ && now - last_progress_ > hub_->options.stall_timeout) return close();
  // Whoever is not read from, because it stopped sending or has sent too much ahead, is not heard to leave.
  if (phase_ == Phase::kAnswering && !reading_ && now >= next_probe_) {
    next_probe_ = now + kNextProbe;
    const std::lock_guard lock(mutex_);
    if (answer_->stage == AnswerState::Stage::kWaiting && answer_->speaks_1_1) add(kContinue);
    // A stream may have nothing to say for a while, as when it waits for a tool.
    if (answer_->stage == AnswerState::Stage::kStreaming && answer_->takes_remarks && !answer_->gone &&
        unsent_bytes_ == 0) {
      answer_->end == BodyEnd::kChunks ? add(body_chunk(kRemark)) : add(kRemark);
    }
  }
  if (now < deadline_) return;
  if (phase_ == Phase::kReading) return refuse(408, "the request did not arrive in time");
  if (phase_ == Phase::kAnswering) return time_out_answer();
  close();
}

void Connection::time_out_answer() {
  std::function<void()> gone;
  {
    const std::lock_guard lock(mutex_);
    if (answer_->stage == AnswerState::Stage::kWaiting && !answer_->gone) {
      gone = std::move(answer_->on_gone);
      answer_->gone = true;
      answer_->keep_alive = false;
      HttpResponse response =
          error_response(dialect_of(answer_->request.path),
                         HttpError(504, "the answer was not complete in time"), answer_->request.id);
      add_answer(*answer_, response);
      deadline_ = Clock::now() + hub_->options.stall_timeout;
    }
  }
  if (phase_ == Phase::kAnswering && Clock::now() >= deadline_) return close();
  if (gone) gone();
}

void Connection::drain() {
  if (phase_ == Phase::kIdle || phase_ == Phase::kOpening) return close();
  close_after_ = true;
  const std::lock_guard lock(mutex_);
  if (answer_) answer_->keep_alive = false;
}

void Connection::close() {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();
  phase_ = Phase::kClosed;
  std::function<void()> gone;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    unsent_ = {};
    if (answer_ && answer_->stage != AnswerState::Stage::kComplete) {
      answer_->gone = true;
      gone = std::move(answer_->on_gone);
    }
  }
  report(false);
  error_code ignored;
  wire_->socket().close(ignored);
  hub_->closed(this);
  answer_.reset();
  parser_.reset();
  if (gone) gone();
}

}  // namespace verbatim::serve
