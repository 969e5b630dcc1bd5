#include <fmt/format.h>

#include "agent/mcp/mcp_transport.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr int kMostBadLines = 100;
constexpr size_t kMostUnread = 32 << 20;

class StdioTransport : public McpTransport {
 public:
  StdioTransport(RealLoop& loop, const McpServerOptions& options, McpTransportHooks hooks)
      : loop_(loop), hooks_(std::move(hooks)) {
    process_ = std::make_unique<Process>(
        loop, options.process,
        ProcessHooks{.output = [this](std::string_view piece) { take(piece); },
                     .ended = [this](int status) { close("the server " + process_->ending(status)); }});
  }
  ~StdioTransport() override { loop_.forget(timer_); }

  void send(const Json& message) override {
    if (closed_) return;
    process_->write(dump(message) + "\n");
    if (process_->unwritten() > kMostUnread) {
      refuse(fmt::format("the server left more than {} MiB of messages unread, and was ended",
                         kMostUnread >> 20));
    }
  }
  void forget(int64_t) override {}
  bool end() override {
    process_->end_input();
    return !closed_;
  }
  void stop() override { process_->stop(); }

 private:
  void take(std::string_view piece) {
    while (!piece.empty() && !closed_) {
      const size_t end = piece.find('\n');
      if (line_.size() + std::min(end, piece.size()) > kMostMcpBytes) {
        refuse(fmt::format("the server sent more than {} MiB in one message, and was ended",
                           kMostMcpBytes >> 20));
        return;
      }
      line_ += piece.substr(0, end);
      if (end == std::string_view::npos) return;
      piece.remove_prefix(end + 1);
      const std::string line = std::exchange(line_, {});
      std::string fault;
      std::optional<Json> message = parse_json(line, &fault);
      if (message && message->is_object()) {
        hooks_.message(std::move(*message));
      } else if (!fault.empty()) {
        refuse("the server was ended: " + fault);
      } else if (line.find_first_not_of(" \t\r") != std::string::npos && ++bad_lines_ > kMostBadLines) {
        // A line or two of greeting is forgiven.
        refuse("the server does not speak JSON-RPC");
      }
    }
  }

  void refuse(std::string why) {
    process_->kill();
    close(std::move(why));
  }

  /// Tells, in a call of its own, so that whoever is told may drop this.
  void close(std::string why) {
    if (closed_) return;
    closed_ = true;
    timer_ = loop_.after(Duration(0), [this, why = std::move(why)] {
      timer_ = 0;
      const auto closed = hooks_.closed;
      closed(why);
    });
  }

  RealLoop& loop_;
  McpTransportHooks hooks_;
  std::unique_ptr<Process> process_;
  std::string line_;
  int bad_lines_ = 0;
  bool closed_ = false;
  uint64_t timer_ = 0;
};

}  // namespace

std::unique_ptr<McpTransport> start_stdio_transport(RealLoop& loop, const McpServerOptions& options,
                                                    McpTransportHooks hooks) {
  return std::make_unique<StdioTransport>(loop, options, std::move(hooks));
}

}  // namespace verbatim::agent
