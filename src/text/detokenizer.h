#pragma once

#include <string>

#include "text/tokenizer.h"

namespace verbatim {

/// Turns a stream of tokens into text that can be printed at once: never half a UTF-8 character. The
/// concatenation of everything returned equals Tokenizer::decode of the same tokens; bytes that can never
/// become valid UTF-8 are passed on unchanged as soon as that is certain.
class StreamingDetokenizer {
 public:
  /// `tokenizer` must outlive this object. `at_start` says that the first token begins the text.
  StreamingDetokenizer(const Tokenizer& tokenizer, bool at_start)
      : tokenizer_(&tokenizer), first_(at_start) {}

  /// The text that `token` completes.
  std::string push(Token token);
  /// What is still held back, at the end of the stream.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool first_;
  std::string held_;
};

}  // namespace verbatim
