#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "agent/mcp/mcp_transport.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

/// Whether a server's version of the protocol, which is a date, can be a header's value.
bool plain_version(const std::string& version) {
  constexpr size_t kLongest = 32;
  return version.size() <= kLongest && std::all_of(version.begin(), version.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
         });
}

/// How a server says that it does not know a session, or knows it no more.
constexpr int kNoSuchSession = 404;

/// The time that a message without an answer may take.
constexpr Duration kLimitOfNotes = std::chrono::seconds(10);

/// Streamable HTTP: each message is posted, and the answer is one message or a stream of them.
class HttpTransport : public McpTransport {
 public:
  HttpTransport(RealLoop& loop, McpServerOptions options, McpTransportHooks hooks)
      : loop_(loop), options_(std::move(options)), hooks_(std::move(hooks)) {}
  ~HttpTransport() override {
    for (auto& [number, post] : posts_) {
      loop_.forget(post->timer);
      loop_.forget(post->limit);
    }
  }

  void send(const Json& message) override {
    HttpCallOptions call{.url = options_.url, .headers = options_.headers, .body = dump(message)};
    call.headers.emplace_back("Content-Type", "application/json");
    call.headers.emplace_back("Accept", "application/json, text/event-stream");
    if (!session_.empty()) call.headers.emplace_back("Mcp-Session-Id", session_);
    if (!version_.empty()) call.headers.emplace_back("MCP-Protocol-Version", version_);
    const uint64_t number = ++made_;
    auto made = std::make_unique<Post>();
    Post* const post = made.get();
    posts_.emplace(number, std::move(made));
    if (message.contains("id") && message.contains("method")) {
      post->request = message["id"].get<int64_t>();
    } else {  // nobody waits for this post, so nobody would ever give it up
      post->limit = loop_.after(kLimitOfNotes, [this, number] { posts_.erase(number); });
    }
    post->call = start_http(
        loop_, std::move(call),
        {.head =
             [this, post](const HttpHead& head) {
               post->status = head.status;
               post->events = head.header("content-type").starts_with("text/event-stream");
               const std::string session = head.header("mcp-session-id");
               if (!session.empty()) session_ = session;
             },
         .body = [this, post, number](std::string_view piece) { take(*post, number, piece); },
         .ended = [this, post, number](const std::string& error) { end_post(*post, number, error); }});
  }

  void forget(int64_t request) override {
    for (auto& [number, post] : posts_) {
      if (post->request == request) post->call.reset();
    }
    std::erase_if(posts_,
                  [&](const auto& one) { return one.second->request == request && one.second->timer == 0; });
  }

 private:
  struct Post {
    std::unique_ptr<HttpCall> call;
    int64_t request = -1;
    int status = 0;
    bool events = false;
    size_t bytes = 0;
    std::string body;
    EventStream stream;
    uint64_t timer = 0;  // that ends it soon
    uint64_t limit = 0;  // that gives it up
  };

  void take(Post& post, uint64_t number, std::string_view piece) {
    post.bytes += piece.size();
    if (post.bytes > kMostMcpBytes) {
      end_post(post, number,
               fmt::format("the server sent more than {} MiB in one answer", kMostMcpBytes >> 20));
      return;
    }
    if (!post.events) {
      post.body += piece;
      return;
    }
    std::vector<Json> messages;
    std::string fault;
    post.stream.add(piece, [&](const std::string& data) {
      if (std::optional<Json> message = parse_json(data, &fault); message && message->is_object()) {
        messages.push_back(std::move(*message));
      }
    });
    if (!fault.empty()) end_post(post, number, "the server's answer is refused: " + fault);
    for (Json& message : messages) tell(std::move(message));
  }

  /// Ends a post in a call of its own, so that its connection is not dropped by itself.
  void end_post(Post& post, uint64_t number, const std::string& error) {
    if (post.timer != 0) return;
    loop_.forget(post.limit);
    std::string why = error;
    if (why.empty() && (post.status < 200 || post.status > 299)) {
      why = fmt::format("the server answered with status {}: {}", post.status,
                        shown(post.body, kShownAnswerBytes));
    }
    const bool again = post.status == kTooManyRequests || !post.call->sent();
    const bool lost = post.status == kNoSuchSession && !session_.empty();
    std::optional<Json> message;
    if (why.empty() && !post.events && !post.body.empty()) {
      std::string fault;
      message = parse_json(post.body, &fault);
      if (!fault.empty()) why = "the server's answer is refused: " + fault;
    }
    post.timer = loop_.after(
        Duration(0), [this, number, again, lost, why = std::move(why), message = std::move(message)] {
          const int64_t request = posts_.at(number)->request;
          posts_.erase(number);
          if (lost) {  // the next call begins a session anew
            const auto closed = hooks_.closed;
            closed("the server has ended the session: " + why);
            return;
          }
          if (message && message->is_object()) tell(*message);
          if (request < 0) return;
          const auto failed = hooks_.failed;
          failed(request, why.empty() ? "the server ended its answer without a result" : why, again);
        });
  }

  void tell(Json message) {
    if (version_.empty() && message.contains("result") && message["result"].is_object() &&
        message["result"].contains("protocolVersion") && message["result"]["protocolVersion"].is_string()) {
      const auto version = message["result"]["protocolVersion"].get<std::string>();
      if (plain_version(version)) version_ = version;
    }
    hooks_.message(std::move(message));
  }

  RealLoop& loop_;
  McpServerOptions options_;
  McpTransportHooks hooks_;
  std::string session_;
  std::string version_;
  std::map<uint64_t, std::unique_ptr<Post>> posts_;
  uint64_t made_ = 0;
};

}  // namespace

std::unique_ptr<McpTransport> start_http_transport(RealLoop& loop, const McpServerOptions& options,
                                                   McpTransportHooks hooks) {
  HttpUrl::parse(options.url);  // throws if it is none
  return std::make_unique<HttpTransport>(loop, options, std::move(hooks));
}

}  // namespace verbatim::agent
