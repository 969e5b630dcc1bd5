#include "serve/openai/chunk_stream.h"

namespace verbatim::serve {

void ChunkStream::send(Json&& choice, const TokenStream::Piece& piece) {
  Json chunk = head_.json();
  chunk["choices"] = Json::array();
  chunk["choices"].push_back(std::move(choice));
  if (usage_) chunk["usage"] = nullptr;
  if (!piece.origins.empty()) {
    chunk["verbatim"] = {{"tokens", origins_json(model_->model, piece, shown_tokens_, levels_)}};
  }
  events_.send(dump(chunk));
}

void ChunkStream::end(const AnswerStats& stats) {
  if (usage_ || extension_) {
    Json json = head_.json();
    json["choices"] = Json::array();
    if (usage_) json["usage"] = stats.usage();
    if (extension_) json["verbatim"] = stats.extension();
    events_.send(dump(json));
  }
  events_.send("[DONE]");
  events_.end();
}

}  // namespace verbatim::serve
