#include "serve/openai/completion_writers.h"

#include "serve/openai/chunk_stream.h"

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
    for (const ScoredToken& each : scored) {
      if (!only_ends(answer_.model->model, answer_.options, each.token)) list.add(each);
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
      : CompletionWriter(std::move(answer)), chunks_(answer_, "cmpl-", "text_completion") {
    for (size_t i = 0; i < choices(); ++i) lists_.emplace_back(answer_.model->model);
  }

  void on_begin() override {
    chunks_.begin();
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

  void on_complete() override { chunks_.end(stats_); }

  void on_error(const HttpError& error) override { chunks_.fail(error); }

 private:
  void send(size_t choice, const std::string& text, const TokenStream::Piece& piece,
            const char* finish = nullptr) {
    Json json = {{"index", choice}, {"text", text}, {"logprobs", nullptr}};
    if (logprobs() && finish == nullptr) json["logprobs"] = lists_[choice].take();
    json["finish_reason"] = finish == nullptr ? Json() : Json(finish);
    chunks_.send(std::move(json), piece);
  }

  ChunkStream chunks_;
  std::vector<CompletionLogprobs> lists_;
};

}  // namespace

std::unique_ptr<ReplyWriter> completion_writer(CompletionAnswer answer) {
  if (answer.request->stream) return std::make_unique<CompletionStream>(std::move(answer));
  return std::make_unique<WholeCompletion>(std::move(answer));
}

}  // namespace verbatim::serve
