#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim {

/// How a text is turned into tokens. The defaults are those of Model::encode(), which prompts go through.
struct EncodeOptions {
  /// Puts the beginning-of-sequence token before the text if the model wants it, or the several tokens that
  /// it wants there.
  bool add_bos = true;
  /// Puts the tokens behind the text that end one, if the model wants any ("</s>", "[SEP]"). A prompt has
  /// none of them, as the answer goes on from its last token.
  bool add_end = false;
  /// Recognizes special tokens that are written out in the text ("<|im_start|>"); otherwise they are plain
  /// text.
  bool special = true;
};

/// The vocabulary of a model without its weights, which are neither read nor packed: it opens at once however
/// large the model is. Copies share the vocabulary. All members may be called from several threads.
class ModelVocabulary {
 public:
  /// Opens the vocabulary of a model in any form that Model::load() takes. Throws Error(kBadInput) when the
  /// model is malformed or has no vocabulary.
  static ModelVocabulary load(const std::filesystem::path& path);

  /// Token ids of a text. Throws Error(kBadInput) for text that is not valid UTF-8.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// The bytes of the text that the tokens make. Control tokens are left out, or, with `show_control`, appear
  /// as the vocabulary spells them. Throws Error(kBadInput) for a token outside the vocabulary.
  std::string decode(const std::vector<int32_t>& tokens, bool show_control = false) const;

  /// The bytes that a token adds to a text: none for control tokens, and not always whole UTF-8 characters.
  /// Some vocabularies begin every text with a space that is not part of it, which the token that is `first`
  /// in a text leaves out. Throws Error(kBadInput) for a token outside the vocabulary.
  std::string token_text(int32_t token, bool first = false) const;
  /// A token as the vocabulary spells it ("▁the", "Ġthe", "<|im_end|>"); empty for ids without an entry.
  /// Throws Error(kBadInput) for a token outside the vocabulary.
  std::string piece(int32_t token) const;
  /// Whether a token steers the model and adds nothing to a text. Throws Error(kBadInput) for a token outside
  /// the vocabulary.
  bool is_control(int32_t token) const;
  /// The number of token ids: every token is at least 0 and below this.
  int32_t vocab_size() const;

 private:
  struct State;
  explicit ModelVocabulary(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

}  // namespace verbatim
