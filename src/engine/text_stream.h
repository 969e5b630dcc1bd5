#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/detokenizer.h"

namespace verbatim {

/// The text side of a generation: detokenizes, with the control tokens that are `shown` spelled out, watches
/// for stop strings and releases text once it is certain to stay.
class TextStream {
 public:
  TextStream(const Tokenizer& tokenizer, bool at_start, std::vector<std::string> stop,
             std::vector<Token> shown = {})
      : detokenizer_(tokenizer, at_start, std::move(shown)), stop_(std::move(stop)) {}

  /// Takes a token in. Returns true when the text now contains a stop string; the text ends before it.
  bool push(Token token);
  /// Takes in the end of the stream. May also complete a stop string.
  bool finish();

  /// The text that became final since the last call.
  std::string_view release();
  const std::string& text() const { return text_; }

 private:
  bool append(std::string_view piece);

  StreamingDetokenizer detokenizer_;
  std::vector<std::string> stop_;
  std::string text_;
  size_t released_ = 0;
  bool finished_ = false;
};

}  // namespace verbatim
