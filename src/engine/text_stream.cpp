#include "engine/text_stream.h"

#include <algorithm>

namespace verbatim {

namespace {

/// The length of the longest end of `text` that a stop string could begin with.
size_t possible_stop_length(std::string_view text, const std::vector<std::string>& stop) {
  size_t longest = 0;
  for (const std::string& candidate : stop) {
    for (size_t length = std::min(candidate.size() - 1, text.size()); length > longest; --length) {
      if (text.ends_with(std::string_view(candidate).substr(0, length))) longest = length;
    }
  }
  return longest;
}

}  // namespace

bool TextStream::append(std::string_view piece) {
  if (piece.empty()) return false;
  size_t longest_stop = 0;
  for (const std::string& candidate : stop_) longest_stop = std::max(longest_stop, candidate.size());
  const size_t before = text_.size();
  text_ += piece;
  const size_t from = before > longest_stop ? before - longest_stop : 0;
  size_t end = std::string::npos;
  for (const std::string& candidate : stop_) end = std::min(end, text_.find(candidate, from));
  if (end == std::string::npos) return false;
  text_.resize(end);
  finished_ = true;
  return true;
}

bool TextStream::push(Token token) {
  return append(detokenizer_.push(token));
}

bool TextStream::finish() {
  const bool stopped = append(detokenizer_.finish());
  finished_ = true;
  return stopped;
}

std::string_view TextStream::release() {
  const size_t end = finished_ ? text_.size() : text_.size() - possible_stop_length(text_, stop_);
  if (end <= released_) return {};
  const std::string_view piece = std::string_view(text_).substr(released_, end - released_);
  released_ = end;
  return piece;
}

}  // namespace verbatim
