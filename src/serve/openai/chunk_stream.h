#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/answer_stats.h"
#include "serve/events.h"
#include "serve/openai/reply_head.h"
#include "serve/token_json.h"

namespace verbatim::serve {

/// An answer of OpenAI's completions or chat completions as a stream of chunks: what both write in the same
/// way.
class ChunkStream {
 public:
  /// `Answer` is CompletionAnswer or ChatAnswer; `id` is the prefix of the answer's id and `object` the name
  /// of its chunks.
  template <typename Answer>
  ChunkStream(const Answer& answer, const char* id, const char* object)
      : head_{new_id(id), object, answer.model->name},
        events_(answer.call),
        model_(answer.model),
        shown_tokens_(answer.options.shown_tokens),
        usage_(answer.request->include_usage),
        extension_(answer.request->extension.present) {
    if (answer.request->extension.origins) levels_ = names_of_levels(*answer.model, answer.recipe);
  }

  /// Begins the answer.
  void begin() { events_.begin(); }
  /// Sends a chunk with one choice, and the origins of the tokens of `piece` if it has any.
  void send(Json&& choice, const TokenStream::Piece& piece);
  /// Sends the last chunk, if the request asked for what it holds, and completes the answer.
  void end(const AnswerStats& stats);
  /// Says an error, which ends the stream.
  void fail(const HttpError& error) { events_.fail(error); }

 private:
  ReplyHead head_;
  EventStream events_;
  std::shared_ptr<LoadedModel> model_;
  std::vector<int32_t> shown_tokens_;
  std::vector<std::string> levels_;
  bool usage_;
  bool extension_;
};

}  // namespace verbatim::serve
