#include "text/detokenizer.h"

#include <utility>

#include "base/utf8.h"

namespace verbatim {

std::string StreamingDetokenizer::push(Token token) {
  if (tokenizer_->is_control(token)) return {};
  held_ += tokenizer_->piece_bytes(token, first_);
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
