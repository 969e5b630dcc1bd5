#include "serve/openai/chat_writers.h"

#include "serve/openai/chunk_stream.h"

namespace verbatim::serve {

namespace {

Json logprobs_of(const ChatAnswer& answer, const std::vector<ScoredToken>& scored) {
  Json list = Json::array();
  for (const ScoredToken& each : scored) {
    if (!only_ends(answer.model->model, answer.options, each.token)) {
      list.push_back(chat_logprob(answer.model->model, each));
    }
  }
  return list;
}

/// The answer as one object.
class WholeChat : public ReplyWriter {
 public:
  explicit WholeChat(ChatAnswer answer)
      : answer_(std::move(answer)),
        stats_(answer_.recipe, answer_.options.sampling.seed),
        choices_(static_cast<size_t>(answer_.request->choices)) {}

  void on_piece(size_t, TokenStream::Piece&&) override {}

  void on_end(size_t choice, GenerateResult&& result) override {
    stats_.add(result, answer_.prompt_tokens);
    ReplyParser parser(answer_.request->question, answer_.model->tool_style);
    std::string content;
    Json calls = Json::array();
    const auto take = [&](const std::vector<ReplyEvent>& events) {
      for (const ReplyEvent& event : events) take_event(event, content, calls);
    };
    take(parser.push(result.text));
    take(parser.finish());
    Json message = {{"role", "assistant"}, {"content", nullptr}, {"refusal", nullptr}};
    if (!content.empty() || calls.empty()) message["content"] = std::move(content);
    const bool called = !calls.empty();
    if (called) message["tool_calls"] = std::move(calls);
    const std::string word = finish_word(result.stats.finish);
    Json& json = choices_[choice];
    json = {{"index", choice}, {"message", std::move(message)}, {"logprobs", nullptr}};
    if (answer_.options.top_logprobs) {
      json["logprobs"] = {{"content", logprobs_of(answer_, result.logprobs)}, {"refusal", nullptr}};
    }
    json["finish_reason"] = called && word == "stop" ? "tool_calls" : word;
  }

  void on_complete() override {
    Json json = ReplyHead{new_id("chatcmpl-"), "chat.completion", answer_.model->name}.json();
    json["choices"] = std::move(choices_);
    json["usage"] = stats_.usage();
    json["verbatim"] = stats_.extension();
    answer_.call->respond(dump(json));
  }

  void on_error(const HttpError& error) override { answer_.call->fail(error); }

 private:
  static void take_event(const ReplyEvent& event, std::string& content, Json& calls) {
    switch (event.kind) {
      case ReplyEvent::Kind::kText:
        content += event.text;
        break;
      case ReplyEvent::Kind::kToolBegin:
        calls.push_back({{"id", event.id},
                         {"type", "function"},
                         {"function", {{"name", event.name}, {"arguments", ""}}}});
        break;
      case ReplyEvent::Kind::kToolArguments:
        calls.back()["function"]["arguments"].get_ref<std::string&>() += event.text;
        break;
      case ReplyEvent::Kind::kToolEnd:
        break;
    }
  }

  ChatAnswer answer_;
  AnswerStats stats_;
  std::vector<Json> choices_;
};

/// The answer as a stream of chunks.
class ChatStream : public ReplyWriter {
 public:
  explicit ChatStream(ChatAnswer answer)
      : answer_(std::move(answer)),
        stats_(answer_.recipe, answer_.options.sampling.seed),
        chunks_(answer_, "chatcmpl-", "chat.completion.chunk") {
    for (int64_t i = 0; i < answer_.request->choices; ++i) {
      choices_.emplace_back(ReplyParser(answer_.request->question, answer_.model->tool_style));
    }
  }

  void on_begin() override {
    chunks_.begin();
    for (size_t i = 0; i < choices_.size(); ++i) send(i, {{"role", "assistant"}, {"content", ""}});
  }

  void on_piece(size_t choice, TokenStream::Piece&& piece) override {
    Choice& own = choices_[choice];
    // What belongs to tokens goes with the next chunk, however long their text is held back.
    own.piece.tokens.insert(own.piece.tokens.end(), piece.tokens.begin(), piece.tokens.end());
    own.piece.origins.insert(own.piece.origins.end(), piece.origins.begin(), piece.origins.end());
    own.piece.logprobs.insert(own.piece.logprobs.end(), piece.logprobs.begin(), piece.logprobs.end());
    send_events(choice, own.parser.push(piece.text));
  }

  void on_end(size_t choice, GenerateResult&& result) override {
    stats_.add(result, answer_.prompt_tokens);
    Choice& own = choices_[choice];
    send_events(choice, own.parser.finish());
    const std::string word = finish_word(result.stats.finish);
    send(choice, Json::object(), own.calls > 0 && word == "stop" ? "tool_calls" : word);
  }

  void on_complete() override { chunks_.end(stats_); }

  void on_error(const HttpError& error) override { chunks_.fail(error); }

 private:
  struct Choice {
    explicit Choice(ReplyParser parser_) : parser(std::move(parser_)) {}

    ReplyParser parser;
    int64_t calls = 0;
    TokenStream::Piece piece = {};  // the tokens that no chunk has told of
  };

  void send_events(size_t choice, const std::vector<ReplyEvent>& events) {
    Choice& own = choices_[choice];
    for (const ReplyEvent& event : events) {
      switch (event.kind) {
        case ReplyEvent::Kind::kText:
          send(choice, {{"content", event.text}});
          break;
        case ReplyEvent::Kind::kToolBegin:
          send_call(choice, {{"index", own.calls++},
                             {"id", event.id},
                             {"type", "function"},
                             {"function", {{"name", event.name}, {"arguments", ""}}}});
          break;
        case ReplyEvent::Kind::kToolArguments:
          send_call(choice, {{"index", own.calls - 1}, {"function", {{"arguments", event.text}}}});
          break;
        case ReplyEvent::Kind::kToolEnd:
          break;
      }
    }
  }

  void send_call(size_t choice, Json&& call) {
    Json calls = Json::array();
    calls.push_back(std::move(call));
    Json delta = Json::object();
    delta["tool_calls"] = std::move(calls);
    send(choice, std::move(delta));
  }

  void send(size_t choice, Json&& delta, const std::string& finish = {}) {
    Choice& own = choices_[choice];
    Json json = {{"index", choice}, {"delta", std::move(delta)}, {"logprobs", nullptr}};
    if (answer_.options.top_logprobs && !own.piece.logprobs.empty()) {
      json["logprobs"] = {{"content", logprobs_of(answer_, own.piece.logprobs)}, {"refusal", nullptr}};
    }
    json["finish_reason"] = finish.empty() ? Json() : Json(finish);
    chunks_.send(std::move(json), own.piece);
    own.piece = {};
  }

  ChatAnswer answer_;
  AnswerStats stats_;
  ChunkStream chunks_;
  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<ReplyWriter> chat_writer(ChatAnswer answer) {
  if (answer.request->stream) return std::make_unique<ChatStream>(std::move(answer));
  return std::make_unique<WholeChat>(std::move(answer));
}

}  // namespace verbatim::serve
