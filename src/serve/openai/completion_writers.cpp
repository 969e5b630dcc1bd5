#include "serve/openai/completion_writers.h"

#include "serve/answer_stats.h"
#include "serve/events.h"
#include "serve/openai/reply_head.h"
#include "serve/token_json.h"

namespace verbatim::serve {

namespace {

/// What both writers do: tell of tokens.
class CompletionWriter : public ReplyWriter {
 protected:
  CompletionWriter(CompletionAnswer answer)
      : answer_(std::move(answer)), stats_(answer_.recipe, answer_.options.sampling.seed) {}

  size_t prompt_of(size_t choice) const { return choice / static_cast<size_t>(answer_.request->choices); }
  const CompletionPrompt& prompt(size_t choice) const { return answer_.prompts[prompt_of(choice)]; }
  size_t choices() const { return answer_.prompts.size() * static_cast<size_t>(answer_.request->choices); }
  bool logprobs() const { return answer_.options.top_logprobs.has_value(); }

  void count(size_t choice, const GenerateResult& result) {
    stats_.add(result, std::ssize(prompt(choice).tokens), prompt_of(choice));
  }

  void add_prompt(CompletionLogprobs& list, size_t choice) const {
    bool known = prompt(choice).first_known;
    for (const ScoredToken& each : prompt(choice).scored) {
      list.add(each, known);
      known = true;
    }
  }

  void add(CompletionLogprobs& list, const std::vector<ScoredToken>& scored) const {
    const auto has = [](const std::vector<int32_t>& tokens, int32_t token) {
      return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
    };
    for (const ScoredToken& each : scored) {
      const bool ends =
          has(answer_.model->model.eos_tokens(), each.token) || has(answer_.options.stop_tokens, each.token);
      if (!ends) list.add(each);
    }
  }

  CompletionAnswer answer_;
  AnswerStats stats_;
};

/// The answer as one object.
class WholeCompletion : public CompletionWriter {
 public:
  explicit WholeCompletion(CompletionAnswer answer) : CompletionWriter(std::move(answer)) {
    choices_.resize(choices());
  }

  void on_piece(size_t, TokenStream::Piece&&) override {}

  void on_end(size_t choice, GenerateResult&& result) override {
    count(choice, result);
    Json& json = choices_[choice];
    json = {{"index", choice}, {"text", prompt(choice).text + result.text}, {"logprobs", nullptr}};
    if (logprobs()) {
      CompletionLogprobs list(answer_.model->model);
      add_prompt(list, choice);
      add(list, result.logprobs);
      json["logprobs"] = list.take();
    }
    json["finish_reason"] = finish_word(result.stats.finish);
  }

  void on_complete() override {
    Json json = ReplyHead{new_id("cmpl-"), "text_completion", answer_.model->name}.json();
    json["choices"] = std::move(choices_);
    json["usage"] = stats_.usage();
    json["verbatim"] = stats_.extension();
    answer_.call->respond(dump(json));
  }

  void on_error(const HttpError& error) override { answer_.call->fail(error); }

 private:
  std::vector<Json> choices_;
};

/// The answer as a stream of chunks.
class CompletionStream : public CompletionWriter {
 public:
  explicit CompletionStream(CompletionAnswer answer)
      : CompletionWriter(std::move(answer)),
        head_{new_id("cmpl-"), "text_completion", answer_.model->name},
        events_(answer_.call) {
    for (size_t i = 0; i < choices(); ++i) lists_.emplace_back(answer_.model->model);
    if (answer_.request->extension.origins) levels_ = names_of_levels(*answer_.model, answer_.recipe);
  }

  void on_begin() override {
    events_.begin();
    if (!answer_.request->echo) return;
    for (size_t i = 0; i < choices(); ++i) {
      add_prompt(lists_[i], i);
      send(i, prompt(i).text, {});
    }
  }

  void on_piece(size_t choice, TokenStream::Piece&& piece) override {
    add(lists_[choice], piece.logprobs);
    send(choice, piece.text, piece);
  }

  void on_end(size_t choice, GenerateResult&& result) override {
    count(choice, result);
    send(choice, {}, {}, finish_word(result.stats.finish));
  }

  void on_complete() override {
    const bool usage = answer_.request->include_usage;
    const bool extension = answer_.request->extension.present;
    if (usage || extension) {
      Json json = head_.json();
      json["choices"] = Json::array();
      if (usage) json["usage"] = stats_.usage();
      if (extension) json["verbatim"] = stats_.extension();
      events_.send(dump(json));
    }
    events_.send("[DONE]");
    events_.end();
  }

  void on_error(const HttpError& error) override { events_.fail(error); }

 private:
  void send(size_t choice, const std::string& text, const TokenStream::Piece& piece,
            const char* finish = nullptr) {
    Json json = {{"index", choice}, {"text", text}, {"logprobs", nullptr}};
    if (logprobs() && finish == nullptr) json["logprobs"] = lists_[choice].take();
    json["finish_reason"] = finish == nullptr ? Json() : Json(finish);
    Json chunk = head_.json();
    chunk["choices"] = Json::array();
    chunk["choices"].push_back(std::move(json));
    if (answer_.request->include_usage) chunk["usage"] = nullptr;
    if (!piece.origins.empty()) {
      chunk["verbatim"] = {
          {"tokens", origins_json(answer_.model->model, piece, answer_.options.shown_tokens, levels_)}};
    }
    events_.send(dump(chunk));
  }

  ReplyHead head_;
  EventStream events_;
  std::vector<CompletionLogprobs> lists_;
  std::vector<std::string> levels_;
};

}  // namespace

std::unique_ptr<ReplyWriter> completion_writer(CompletionAnswer answer) {
  if (answer.request->stream) return std::make_unique<CompletionStream>(std::move(answer));
  return std::make_unique<WholeCompletion>(std::move(answer));
}

}  // namespace verbatim::serve
