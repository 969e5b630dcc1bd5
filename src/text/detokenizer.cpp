#include "text/detokenizer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace verbatim {

std::string StreamingDetokenizer::push(Token token) {
  if (tokenizer_->is_control(token)) {
    if (std::find(shown_.begin(), shown_.end(), token) == shown_.end()) return {};
    held_ += tokenizer_->vocabulary_text(token);
  } else {
    held_ += tokenizer_->piece_bytes(token, first_);
  }
  first_ = false;
  const size_t ready = held_.size() - incomplete_utf8_suffix(held_);
  std::string text = held_.substr(0, ready);
  held_.erase(0, ready);
  return text;
}

std::string StreamingDetokenizer::finish() {
  return std::exchange(held_, {});
}

}  // namespace verbatim
