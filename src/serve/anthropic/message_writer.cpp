#include "serve/anthropic/message_writer.h"

#include "serve/answer_stats.h"
#include "serve/events.h"
#include "serve/ids.h"
#include "serve/matched_stop.h"

namespace verbatim::serve {
namespace {

/// The ids of Anthropic's calls begin with a word of their own; Mistral's templates want nine signs as they
/// are.
std::string tool_use_id(const std::string& id) {
  constexpr std::string_view kOpenAi = "call_";
  return id.starts_with(kOpenAi) ? "toolu_" + id.substr(kOpenAi.size()) : id;
}

/// Builds a message block by block. A stream tells each step of that in an event; a whole answer has what
/// came out.
class MessageWriter : public ReplyWriter {
 public:
  explicit MessageWriter(MessageAnswer answer)
      : answer_(std::move(answer)),
        stats_(answer_.recipe, answer_.options.sampling.seed),
        parser_(answer_.request->question, answer_.model->tool_style),
        events_(answer_.call),
        message_({{"id", new_id("msg_")},
                  {"type", "message"},
                  {"role", "assistant"},
                  {"model", answer_.model->name},
                  {"content", Json::array()},
                  {"stop_reason", nullptr},
                  {"stop_sequence", nullptr},
                  {"usage", usage(answer_.prompt_tokens, 0, 0)}}) {}

  void on_begin() override {
    if (!answer_.request->stream) return;
    events_.begin();
    send({{"type", "message_start"}, {"message", message_}});
  }

  void on_piece(size_t, TokenStream::Piece&& piece) override { take(parser_.push(piece.text)); }

  void on_end(size_t, GenerateResult&& result) override {
    take(parser_.finish());
    close_block();
    stats_.add(result, answer_.prompt_tokens);
    const int64_t cached = stats_.cached_tokens();
    message_["usage"] = usage(stats_.prompt_tokens() - cached, cached, stats_.generated_tokens());
    set_stop(result);
  }

  void on_complete() override {
    const bool extension = answer_.request->extension.present;
    if (!answer_.request->stream) {
      if (extension) message_["verbatim"] = stats_.extension();
      answer_.call->respond(dump(message_));
      return;
    }
    Json delta = {
        {"type", "message_delta"},
        {"delta", {{"stop_reason", message_["stop_reason"]}, {"stop_sequence", message_["stop_sequence"]}}},
        {"usage", message_["usage"]}};
    if (extension) delta["verbatim"] = stats_.extension();
    send(delta);
    send({{"type", "message_stop"}});
    events_.end();
  }

  void on_error(const HttpError& error) override { events_.fail(error); }

 private:
  static Json usage(int64_t input, int64_t cached, int64_t output) {
    return {{"input_tokens", input},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", cached},
            {"output_tokens", output}};
  }

  void send(const Json& event) {
    if (answer_.request->stream) events_.send(dump(event), event["type"].get_ref<const std::string&>());
  }

  void take(const std::vector<ReplyEvent>& events) {
    for (const ReplyEvent& event : events) {
      switch (event.kind) {
        case ReplyEvent::Kind::kText:
          if (!open_ || tool_) open_block({{"type", "text"}, {"text", ""}});
          text_ += event.text;
          send_delta({{"type", "text_delta"}, {"text", event.text}});
          break;
        case ReplyEvent::Kind::kToolBegin:
          open_block({{"type", "tool_use"},
                      {"id", tool_use_id(event.id)},
                      {"name", event.name},
                      {"input", Json::object()}});
          break;
        case ReplyEvent::Kind::kToolArguments:
          text_ += event.text;
          send_delta({{"type", "input_json_delta"}, {"partial_json", event.text}});
          break;
        case ReplyEvent::Kind::kToolEnd:
          ++calls_;
          close_block();
          break;
      }
    }
  }

  void open_block(Json&& block) {
    close_block();
    open_ = true;
    tool_ = block["type"] == "tool_use";
    text_.clear();
    const size_t index = message_["content"].size();
    send({{"type", "content_block_start"}, {"index", index}, {"content_block", block}});
    if (index == 0) send({{"type", "ping"}});
    message_["content"].push_back(std::move(block));
  }

  void send_delta(Json&& delta) {
    send({{"type", "content_block_delta"},
          {"index", message_["content"].size() - 1},
          {"delta", std::move(delta)}});
  }

  void close_block() {
    if (!std::exchange(open_, false)) return;
    Json& block = message_["content"].back();
    if (!tool_) {
      block["text"] = text_;
    } else if (std::optional<Json> input = parse_inner(text_, budget_); input && input->is_object()) {
      block["input"] =
          std::move(*input);  // of a call that was cut off it stays empty, as it must be an object
    }
    send({{"type", "content_block_stop"}, {"index", message_["content"].size() - 1}});
  }

  void set_stop(const GenerateResult& result) {
    const FinishReason finish = result.stats.finish;
    const char* reason = calls_ > 0 ? "tool_use" : "end_turn";
    if (finish == FinishReason::kLength || finish == FinishReason::kContext) reason = "max_tokens";
    if (finish == FinishReason::kStopString) {
      const std::string stop =
          matched_stop(answer_.model->model, result, answer_.request->stop, answer_.options.shown_tokens);
      if (!stop.empty()) {
        reason = "stop_sequence";
        message_["stop_sequence"] = stop;
      }
    }
    message_["stop_reason"] = reason;
  }

  MessageAnswer answer_;
  AnswerStats stats_;
  ReplyParser parser_;
  EventStream events_;
  Json message_;
  std::string text_;   // of the block that is open: its text or its arguments
  bool open_ = false;  // whether the last block is still being written
  bool tool_ = false;  // whether the last block is a call
  JsonBudget budget_;  // of the arguments of all calls
  int64_t calls_ = 0;  // calls that are complete
};

}  // namespace

std::unique_ptr<ReplyWriter> message_writer(MessageAnswer answer) {
  return std::make_unique<MessageWriter>(std::move(answer));
}

}  // namespace verbatim::serve
