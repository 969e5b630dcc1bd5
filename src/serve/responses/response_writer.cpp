#include "serve/responses/response_writer.h"

#include "serve/answer_stats.h"
#include "serve/events.h"
#include "serve/ids.h"
#include "serve/responses/response_object.h"
#include "serve/token_json.h"

namespace verbatim::serve {
namespace {

/// Builds a response item by item. A stream tells each step of that in an event; a whole answer has what came
/// out.
class ResponseWriter : public ReplyWriter {
 public:
  explicit ResponseWriter(ResponseAnswer answer)
      : answer_(std::move(answer)),
        stats_(answer_.recipe, answer_.options.sampling.seed),
        parser_(answer_.request->question, answer_.model->tool_style),
        events_(answer_.call),
        response_(begun_response(answer_)) {}

  void on_begin() override {
    if (!answer_.request->stream) return;
    events_.begin();
    send("response.created", {{"response", response_}});
    send("response.in_progress", {{"response", response_}});
  }

  void on_piece(size_t, TokenStream::Piece&& piece) override {
    for (const ScoredToken& scored : piece.logprobs) {
      if (!only_ends(answer_.model->model, answer_.options, scored.token))
        scored_.push_back(chat_logprob(answer_.model->model, scored));
    }
    take(parser_.push(piece.text));
  }

  void on_end(size_t, GenerateResult&& result) override {
    const FinishReason finish = result.stats.finish;
    complete_ = finish != FinishReason::kLength && finish != FinishReason::kContext;
    take(parser_.finish());
    if (response_["output"].empty()) open_message();  // clients expect an answer, if an empty one
    close_item(complete_ ? "completed" : "incomplete");
    stats_.add(result, answer_.prompt_tokens);
    response_["status"] = complete_ ? "completed" : "incomplete";
    if (!complete_) response_["incomplete_details"] = {{"reason", "max_output_tokens"}};
    const int64_t input = stats_.prompt_tokens();
    const int64_t output = stats_.generated_tokens();
    response_["usage"] = {{"input_tokens", input},
                          {"input_tokens_details", {{"cached_tokens", stats_.cached_tokens()}}},
                          {"output_tokens", output},
                          {"output_tokens_details", {{"reasoning_tokens", 0}}},
                          {"total_tokens", input + output}};
    response_["verbatim"] = stats_.extension();
  }

  void on_complete() override {
    keep_response(answer_, response_);
    if (!answer_.request->stream) {
      answer_.call->respond(dump(response_));
      return;
    }
    send(complete_ ? "response.completed" : "response.incomplete", {{"response", response_}});
    events_.end();
  }

  void on_error(const HttpError& error) override {
    if (!events_.begun()) {
      events_.fail(error);
      return;
    }
    response_["status"] = "failed";
    response_["error"] = {{"code", "server_error"}, {"message", error.what()}};
    send("response.failed", {{"response", response_}});
    events_.end();
  }

 private:
  void send(std::string_view type, Json&& members) {
    if (!answer_.request->stream) return;
    Json event = {{"type", type}, {"sequence_number", sequence_++}};
    event.update(members);
    events_.send(dump(event), type);
  }

  Json& item() { return response_["output"].back(); }
  size_t item_index() { return response_["output"].size() - 1; }

  /// Sends an event about the last item, and about its one part if it is a message.
  void send_of_item(std::string_view type, Json&& members) {
    Json all = {{"item_id", item()["id"]}, {"output_index", item_index()}};
    if (!call_) all["content_index"] = 0;
    all.update(members);
    send(type, std::move(all));
  }

  void take(const std::vector<ReplyEvent>& events) {
    for (const ReplyEvent& event : events) {
      switch (event.kind) {
        case ReplyEvent::Kind::kText:
          if (!open_ || call_) open_message();
          add_text(event.text);
          break;
        case ReplyEvent::Kind::kToolBegin:
          open_call(event);
          break;
        case ReplyEvent::Kind::kToolArguments:
          text_ += event.text;
          send_of_item("response.function_call_arguments.delta", {{"delta", event.text}});
          break;
        case ReplyEvent::Kind::kToolEnd:
          close_item("completed");
          break;
      }
    }
  }

  void open_item(Json&& item, bool call) {
    close_item("completed");
    open_ = true;
    call_ = call;
    text_.clear();
    logprobs_ = Json::array();
    response_["output"].push_back(std::move(item));
    send("response.output_item.added", {{"output_index", item_index()}, {"item", this->item()}});
  }

  void open_message() {
    open_item({{"id", new_id("msg_")},
               {"type", "message"},
               {"status", "in_progress"},
               {"role", "assistant"},
               {"content", Json::array()}},
              false);
    send_of_item("response.content_part.added", {{"part", part()}});
  }

  void open_call(const ReplyEvent& event) {
    open_item({{"id", new_id("fc_")},
               {"type", "function_call"},
               {"status", "in_progress"},
               {"arguments", ""},
               {"call_id", event.id},
               {"name", event.name}},
              true);
    scored_ = Json::array();  // the tokens of a call's form are no text
  }

  Json part() const {
    return {
        {"type", "output_text"}, {"text", text_}, {"annotations", Json::array()}, {"logprobs", logprobs_}};
  }

  void add_text(const std::string& text) {
    text_ += text;
    Json scored = std::exchange(scored_, Json::array());
    for (const Json& each : scored) logprobs_.push_back(each);
    send_of_item("response.output_text.delta", {{"delta", text}, {"logprobs", std::move(scored)}});
  }

  void close_item(const char* status) {
    if (!std::exchange(open_, false)) return;
    if (call_) {
      item()["arguments"] = text_;
      send_of_item("response.function_call_arguments.done", {{"arguments", text_}, {"name", item()["name"]}});
      scored_ = Json::array();
    } else {
      for (Json& each : scored_) logprobs_.push_back(std::move(each));
      scored_ = Json::array();
      item()["content"].push_back(part());
      send_of_item("response.output_text.done", {{"text", text_}, {"logprobs", logprobs_}});
      send_of_item("response.content_part.done", {{"part", part()}});
    }
    item()["status"] = status;
    send("response.output_item.done", {{"output_index", item_index()}, {"item", item()}});
  }

  ResponseAnswer answer_;
  AnswerStats stats_;
  ReplyParser parser_;
  EventStream events_;
  Json response_;
  int64_t sequence_ = 0;           // number of the next event
  std::string text_;               // of the item that is open: its text or its arguments
  Json logprobs_ = Json::array();  // of text_
  Json scored_ = Json::array();    // log-probabilities of tokens whose text has not come
  bool open_ = false;              // whether the last item is still being written
  bool call_ = false;              // whether the last item is a call
  bool complete_ = false;          // whether the answer ended by itself
};

}  // namespace

std::unique_ptr<ReplyWriter> response_writer(ResponseAnswer answer) {
  return std::make_unique<ResponseWriter>(std::move(answer));
}

}  // namespace verbatim::serve
