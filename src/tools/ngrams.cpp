#include "verbatim/ngrams.h"

#include "container/load.h"
#include "drafting/ngram_table.h"
#include "text/tokenizer.h"
#include "verbatim/text.h"

namespace verbatim {

struct NgramCounter::State {
  std::shared_ptr<const Tokenizer> tokenizer;
  NgramTable table;
  int64_t tokens = 0;
};

NgramCounter::NgramCounter(const std::filesystem::path& model, const NgramOptions& options) {
  const Checkpoint checkpoint = open_without_weights(model);
  std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(checkpoint.tokenizer);
  state_ =
      std::make_unique<State>(State{.tokenizer = std::move(tokenizer),
                                    .table = NgramTable({options.shortest, options.longest, options.contexts,
                                                         checkpoint.config.vocab_size})});
}

NgramCounter::~NgramCounter() = default;
NgramCounter::NgramCounter(NgramCounter&&) noexcept = default;
NgramCounter& NgramCounter::operator=(NgramCounter&&) noexcept = default;

void NgramCounter::add(std::string_view text, const std::string& where) {
  require_utf8(text, where);
  // As a prompt is taken in, but that texts do not begin where a sequence does.
  const std::vector<int32_t> tokens =
      state_->tokenizer->encode(text, {.add_bos = false, .parse_special = true});
  state_->table.learn(tokens);
  state_->tokens += std::ssize(tokens);
}

int64_t NgramCounter::tokens() const {
  return state_->tokens;
}

int64_t NgramCounter::contexts() const {
  return state_->table.size();
}

void NgramCounter::save(const std::filesystem::path& file) const {
  state_->table.save(file);
}

}  // namespace verbatim
