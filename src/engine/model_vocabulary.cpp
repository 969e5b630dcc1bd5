#include "verbatim/model_vocabulary.h"

#include <utility>

#include "base/error.h"
#include "container/load.h"
#include "engine/model_data.h"

namespace verbatim {

struct ModelVocabulary::State {
  std::shared_ptr<const Tokenizer> tokenizer;
  int32_t vocab_size;

  void require(int32_t token) const {
    if (token >= 0 && token < vocab_size) return;
    bad_input("token {} lies outside the vocabulary of {} tokens", token, vocab_size);
  }
};

ModelVocabulary::ModelVocabulary(std::shared_ptr<const State> state) : state_(std::move(state)) {}

ModelVocabulary ModelVocabulary::load(const std::filesystem::path& path) {
  const Checkpoint checkpoint = open_without_weights(path);
  std::shared_ptr<const Tokenizer> tokenizer = tokenizer_of(checkpoint);
  if (tokenizer == nullptr) refuse_without_vocabulary(checkpoint);
  return ModelVocabulary(std::make_shared<State>(
      State{.tokenizer = std::move(tokenizer), .vocab_size = checkpoint.config.vocab_size}));
}

std::vector<int32_t> ModelVocabulary::encode(std::string_view text, const EncodeOptions& options) const {
  return state_->tokenizer->encode(
      text, {.add_bos = options.add_bos, .add_end = options.add_end, .parse_special = options.special});
}

std::string ModelVocabulary::decode(const std::vector<int32_t>& tokens, bool show_control) const {
  const Tokenizer& tokenizer = *state_->tokenizer;
  std::string text;
  std::string between;  // the text behind the last control token that is shown
  const auto append_between = [&] {
    text += with_replacements(std::exchange(between, {}), tokenizer.replacements());
  };
  bool first = true;
  for (const int32_t token : tokens) {
    if (is_control(token)) {
      if (!show_control) continue;
      append_between();
      text += piece(token);
      continue;
    }
    between += token_text(token, first);
    first = false;
  }
  append_between();
  return without_edges(std::move(text), tokenizer.edges());
}

std::string ModelVocabulary::token_text(int32_t token, bool first) const {
  state_->require(token);
  return token < state_->tokenizer->vocab_size() ? state_->tokenizer->piece_bytes(token, first)
                                                 : std::string();
}

std::string ModelVocabulary::piece(int32_t token) const {
  state_->require(token);
  return token < state_->tokenizer->vocab_size() ? std::string(state_->tokenizer->vocabulary_text(token))
                                                 : std::string();
}

bool ModelVocabulary::is_control(int32_t token) const {
  state_->require(token);
  return token < state_->tokenizer->vocab_size() && state_->tokenizer->is_control(token);
}

int32_t ModelVocabulary::vocab_size() const {
  return state_->vocab_size;
}

}  // namespace verbatim
