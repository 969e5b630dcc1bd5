#include "agent/model/openai_endpoint.h"

#include <fmt/format.h>

#include "agent/json.h"
#include "agent/net/http_client.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::agent {

namespace {

constexpr size_t kMostBody = 1 << 20;  // of an answer that is no stream

class OpenAiStream : public ModelStream {
 public:
  OpenAiStream(RealLoop& loop, HttpCallOptions options, ModelHooks hooks)
      : loop_(loop), hooks_(std::move(hooks)) {
    call_ = start_http(loop, std::move(options),
                       {.head = [this](const HttpHead& head) { status_ = head.status; },
                        .body = [this](std::string_view piece) { take(piece); },
                        .ended = [this](const std::string& error) { end(error); }});
  }
  ~OpenAiStream() override { loop_.forget(timer_); }

 private:
  void take(std::string_view piece) {
    if (status_ != 200) {
      if (body_.size() < kMostBody) body_ += piece;
      return;
    }
    std::vector<std::string> events;
    try {
      stream_.add(piece, [&](const std::string& data) { events.push_back(data); });
    } catch (const Error& error) {
      end(error.what());
      return;
    }
    std::string text;
    for (const std::string& data : events) text += text_of(data);
    if (!text.empty() && timer_ == 0) hooks_.piece(text);
  }

  /// The text of an event; what else it tells is noted.
  std::string text_of(const std::string& data) {
    if (data == "[DONE]") {
      done_ = true;
      return {};
    }
    const std::optional<Json> json = parse_json(data);
    if (!json || !json->is_object()) return {};
    if (json->contains("error")) {
      const Json& error = (*json)["error"];
      failure_ = error.is_object() && error.contains("message") ? as_text(error["message"]) : as_text(error);
    }
    if (json->contains("usage") && (*json)["usage"].is_object()) {
      const Json& usage = (*json)["usage"];
      const auto count = [&](const char* key) {
        return usage.contains(key) && usage[key].is_number_integer() ? usage[key].get<int64_t>() : int64_t{0};
      };
      reply_.prompt_tokens = count("prompt_tokens");
      reply_.reply_tokens = count("completion_tokens");
    }
    if (!json->contains("choices") || !(*json)["choices"].is_array() || (*json)["choices"].empty()) return {};
    const Json& choice = (*json)["choices"][0];
    if (!choice.is_object()) return {};
    if (choice.contains("finish_reason") && choice["finish_reason"].is_string()) {
      finished_ = true;
      reply_.cut = choice["finish_reason"] == "length";
    }
    if (!choice.contains("delta") || !choice["delta"].is_object()) return {};
    const Json& delta = choice["delta"];
    return delta.contains("content") && delta["content"].is_string() ? delta["content"].get<std::string>()
                                                                     : std::string();
  }

  void end(const std::string& error) {
    if (timer_ != 0) return;
    if (!error.empty() && !done_) {
      reply_.error = error;
    } else if (status_ != 200) {
      reply_.error = fmt::format("the model's server answered with status {}: {}", status_,
                                 shown(body_, kShownAnswerBytes));
    } else if (!failure_.empty()) {
      reply_.error = "the model's server: " + shown(failure_, kShownAnswerBytes);
    } else if (!done_ && !finished_) {
      reply_.error = "the model's server ended its stream before the reply's end";
    }
    timer_ = loop_.after(Duration(0), [this] {
      const auto ended = hooks_.ended;
      ended(reply_);
    });
  }

  RealLoop& loop_;
  ModelHooks hooks_;
  std::unique_ptr<HttpCall> call_;
  EventStream stream_;
  ModelReply reply_;
  std::string body_;
  std::string failure_;
  int status_ = 0;
  bool done_ = false;
  bool finished_ = false;
  uint64_t timer_ = 0;
};

class OpenAiEndpoint : public Endpoint {
 public:
  OpenAiEndpoint(RealLoop& loop, OpenAiOptions options) : loop_(loop), options_(std::move(options)) {
    while (options_.url.ends_with('/')) options_.url.pop_back();
    HttpUrl::parse(options_.url);
  }

  std::unique_ptr<ModelStream> start(ModelRequest request, ModelHooks hooks) override {
    Json body = {{"model", options_.model.empty() ? "default" : options_.model},
                 {"messages", Json::array()},
                 {"max_tokens", request.max_tokens},
                 {"temperature", request.temperature},
                 {"seed", request.seed & 0x7FFFFFFF},
                 {"stream", true},
                 {"stream_options", {{"include_usage", true}}}};
    for (const ModelMessage& message : request.messages) {
      body["messages"].push_back({{"role", message.role}, {"content", message.content}});
    }
    HttpCallOptions call{.url = options_.url + "/chat/completions", .body = dump(body)};
    call.headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
    if (!options_.api_key.empty()) call.headers.emplace_back("Authorization", "Bearer " + options_.api_key);
    return std::make_unique<OpenAiStream>(loop_, std::move(call), std::move(hooks));
  }

 private:
  RealLoop& loop_;
  OpenAiOptions options_;
};

}  // namespace

std::unique_ptr<Endpoint> openai_endpoint(RealLoop& loop, OpenAiOptions options) {
  return std::make_unique<OpenAiEndpoint>(loop, std::move(options));
}

}  // namespace verbatim::agent
