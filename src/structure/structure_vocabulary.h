#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "structure/grammar.h"
#include "structure/token_trie.h"
#include "text/continuation.h"
#include "text/tokenizer.h"

namespace verbatim {

/// The tokens of a vocabulary as a class of characters sees them. The class has every character beyond ASCII,
/// and those below that it does not lack.
struct ClassTokens {
  /// By n: the tokens that are whole characters of the class, at most n of them. The last element has all.
  std::vector<TokenBits> within;
  /// All other tokens that have a text.
  TokenTrie rest;
};

/// What structures need to know about a vocabulary; made once for a model, which it must not outlive. All
/// members may be called from several threads.
class StructureVocabulary {
 public:
  /// `size` is the number of the model's tokens, at least that of the tokenizer.
  StructureVocabulary(std::shared_ptr<const Tokenizer> tokenizer, int32_t size);

  int32_t size() const { return size_; }
  /// The number of elements that TokenBits of all tokens have.
  size_t words() const { return (static_cast<size_t>(size_) + 63) / 64; }
  /// The text that a token adds behind other text; empty for tokens without one.
  std::string_view text(int32_t token) const {
    const auto i = static_cast<size_t>(token);
    return std::string_view(texts_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }
  /// All tokens that have a text.
  const TokenTrie& tokens() const { return tokens_; }
  /// The tokens as a class of characters sees them.
  std::shared_ptr<const ClassTokens> class_tokens(const ByteSet& lacking) const;
  /// The token that the vocabulary spells like this and that adds nothing to a text.
  std::optional<int32_t> special(std::string_view spelling) const;
  /// Appends the tokens of a text that continues another one (valid UTF-8). Returns whether their texts are
  /// exactly that.
  bool encode(std::string_view text, std::vector<int32_t>& tokens) const {
    return encoder_.encode(text, tokens);
  }

 private:
  std::shared_ptr<const ClassTokens> make_class_tokens(const ByteSet& lacking) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  ContinuationEncoder encoder_;
  int32_t size_;
  std::string texts_;         // of all tokens, one after the other
  std::vector<size_t> ends_;  // ends_[t] is where the text of token t begins, ends_[t + 1] where it ends
  TokenTrie tokens_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const ClassTokens>> classes_;  // by their lacking bytes
};

}  // namespace verbatim
