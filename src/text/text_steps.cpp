#include "text/text_steps.h"

#include <string>
#include <utility>

namespace verbatim {

void encode_words(const TextSteps& steps, std::string_view segment, bool first, std::vector<Token>& tokens,
                  const std::function<void(std::string_view)>& encode_word) {
  const auto encode_plain = [&](std::string text, bool at_start) {
    const PreTokens words = pre_tokenize(steps.pre_tokenizer, std::move(text), at_start);
    for (const TextRange& range : words.ranges) {
      encode_word(std::string_view(words.text).substr(range.begin, range.end - range.begin));
    }
  };
  std::string normalized = normalize(steps.normalizer, segment);
  if (steps.normalized_added.empty()) return encode_plain(std::move(normalized), first);
  for (const TextSegment& part : steps.normalized_added.split(normalized, true)) {
    if (part.token >= 0) {
      tokens.push_back(part.token);
    } else {
      encode_plain(std::string(part.text), first);
    }
    first = false;
  }
}

}  // namespace verbatim
