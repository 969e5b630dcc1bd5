#pragma once

#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace verbatim {

/// Turns a stream of tokens into text that can be printed at once: never half a UTF-8 character, and nothing
/// that the end of the text could leave out. The concatenation of everything returned equals
/// Tokenizer::decode of the same tokens; bytes that can never become valid UTF-8 are passed on unchanged as
/// soon as that is certain.
class StreamingDetokenizer {
 public:
  /// `tokenizer` must outlive this object. `at_start` says that the first token begins the text. `shown` are
  /// control tokens that become text as the vocabulary spells them, which decode() leaves out.
  StreamingDetokenizer(const Tokenizer& tokenizer, bool at_start, std::vector<Token> shown = {});

  /// Takes in a token and returns the text that it completes.
  std::string push(Token token);
  /// Ends the stream and returns the bytes that are still held back.
  std::string finish();

 private:
  void hold(bool ends);
  bool drop_start();

  const Tokenizer* tokenizer_;
  bool first_;
  std::vector<Token> shown_;
  TextEdges edges_;  // `start` counts down
  std::vector<TextReplacement> replacements_;
  std::string incomplete_;  // bytes behind `held_` that form no character yet
  std::string held_;
};

}  // namespace verbatim
