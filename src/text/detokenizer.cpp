#include "text/detokenizer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace verbatim {

StreamingDetokenizer::StreamingDetokenizer(const Tokenizer& tokenizer, bool at_start,
                                           std::vector<Token> shown)
    : tokenizer_(&tokenizer),
      first_(at_start),
      shown_(std::move(shown)),
      edges_(tokenizer.edges()),
      replacements_(tokenizer.replacements()) {
  if (!at_start) edges_.start = 0;
}

/// Holds what the incomplete bytes have come to be. What does not end the text waits for the rest of a
/// character.
void StreamingDetokenizer::hold(bool ends) {
  const size_t ready = incomplete_.size() - (ends ? 0 : incomplete_utf8_suffix(incomplete_));
  held_ += with_replacements(incomplete_.substr(0, ready), replacements_);
  incomplete_.erase(0, ready);
}

/// Drops what the start of the text leaves out. Returns false if it must see more of the text.
bool StreamingDetokenizer::drop_start() {
  const std::string_view content = edges_.content;
  while (edges_.start > 0) {
    if (held_.starts_with(content)) {
      held_.erase(0, content.size());
      --edges_.start;
    } else if (content.starts_with(held_)) {
      return false;
    } else {
      edges_.start = 0;
    }
  }
  return true;
}

std::string StreamingDetokenizer::push(Token token) {
  if (tokenizer_->is_control(token)) {
    if (std::find(shown_.begin(), shown_.end(), token) == shown_.end()) return {};
    hold(true);  // no control token completes a character, and none is replaced
    held_ += tokenizer_->vocabulary_text(token);
  } else {
    incomplete_ += tokenizer_->piece_bytes(token, first_);
    hold(false);
  }
  first_ = false;
  if (!drop_start()) return {};
  size_t ready = held_.size();
  // What may turn out to be the end of the text waits for what follows.
  for (size_t i = 0; i < edges_.stop; ++i) {
    if (!std::string_view(held_).substr(0, ready).ends_with(edges_.content)) break;
    ready -= edges_.content.size();
  }
  std::string text = held_.substr(0, ready);
  held_.erase(0, ready);
  return text;
}

std::string StreamingDetokenizer::finish() {
  hold(true);
  return without_edges(std::exchange(held_, {}),
                       {.content = edges_.content, .start = 0, .stop = edges_.stop});
}

}  // namespace verbatim
