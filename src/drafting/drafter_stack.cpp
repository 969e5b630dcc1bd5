#include "drafting/drafter_stack.h"

#include <algorithm>

#include "base/error.h"
#include "drafting/draft_vocabulary.h"
#include "drafting/ngram_drafter.h"
#include "drafting/sparse_levels.h"
#include "drafting/translating_drafter.h"
#include "text/same_vocabulary.h"

namespace verbatim {

namespace {

/// The largest size of a draft model, in bytes of weights, that one thread evaluates alone: such a pass is
/// over before a second thread has woken up.
constexpr int64_t kOneThreadBytes = int64_t{8} << 20;

int64_t weight_bytes(const DecoderWeights& weights, Reading reading) {
  int64_t bytes = 0;
  each_matrix(weights, [&](const LinearWeight& weight) { bytes += weight.store(reading).bytes(); });
  return bytes;
}

/// Whether tokens of the draft model must be translated. Throws Error(kUsage) when that cannot be known.
bool needs_translation(const Recipe& recipe, const TextModel& model, const TextModel& draft_model) {
  if (model.tokenizer == nullptr || draft_model.tokenizer == nullptr) {
    fail(ErrorKind::kUsage,
         "recipe {} drafts with another model, but the {} has no tokenizer to compare vocabularies with: add "
         "its tokenizer.model or tokenizer.json",
         recipe.name, model.tokenizer == nullptr ? "model" : "draft model");
  }
  return !same_vocabulary(*model.tokenizer, *draft_model.tokenizer);
}

/// The number of positions that a draft model needs for sequences of `capacity` tokens of another vocabulary.
/// A text that takes more loses its beginning.
int64_t translated_capacity(int64_t capacity, const ModelConfig& config) {
  constexpr int64_t kTokensPerToken = 4;
  constexpr int64_t kLeast = 256;
  return std::min<int64_t>(std::max(kTokensPerToken * capacity, kLeast), config.context);
}

/// A head for `count` of the first `tokens` tokens.
SharedHeads::Head reduced_head(const LinearWeight& head, Reading reading, const Tokenizer* tokenizer,
                               int32_t tokens, int32_t count, ThreadTeam& team) {
  std::vector<int32_t> chosen = draft_vocabulary(tokenizer, tokens, count);
  if (chosen.empty() || chosen.back() == count - 1) {
    return {std::make_shared<LinearWeight>(first_columns(head, count)), {}};
  }
  auto gathered = std::make_shared<LinearWeight>(draft_head(head, reading, chosen, team));
  return {std::move(gathered), std::move(chosen)};
}

/// Throws unless a level's tokens go through fewer experts than the model's.
void require_fewer_experts(const DraftLevel& level, const Recipe& recipe, const ModelConfig& config) {
  if (level.experts == 0) return;
  const int32_t used = config.experts.used;
  if (used == 0) {
    fail(ErrorKind::kUsage,
         "recipe {}: drafts with fewer experts, but the model has none; remove \"experts\"", recipe.name);
  }
  if (level.experts >= used) {
    fail(ErrorKind::kUsage, "recipe {}: drafts with {} experts for each token, but the model takes {}; {}",
         recipe.name, level.experts, used, used == 1 ? "remove \"experts\"" : "let \"experts\" be less");
  }
}

}  // namespace

PassKind pass_kind(const DraftLevel& level, const std::string& where) {
  PassKind kind(parse_reading(level.reading, where));
  kind.drafts = true;
  kind.layers = level.layers;
  kind.experts = level.experts;
  if (level.cache == "draft") kind.cache = CachePart::kDraft;
  return kind;
}

DrafterStack::DrafterStack(const Recipe& recipe, Evaluator& target, const TextModel& model,
                           const TextModel& draft_model, int64_t capacity, ThreadTeam& team,
                           SharedHeads* heads) {
  if (const std::string mistake = sparse_mistake(recipe); !mistake.empty()) {
    fail(ErrorKind::kUsage, "recipe {}: {}", recipe.name, mistake);
  }
  SharedHeads own_heads;
  SharedHeads& shared = heads != nullptr ? *heads : own_heads;
  shared.levels.resize(recipe.levels.size());
  for (const DraftLevel& level : recipe.levels) {
    if (level.kind == DraftLevel::Kind::kNgram) {
      drafters_.push_back(std::make_unique<NgramDrafter>(level, model.decoder->config().vocab_size));
      networks_.push_back(nullptr);
      continue;
    }
    const PassKind kind = pass_kind(level, "recipe " + recipe.name);
    const bool self = level.kind == DraftLevel::Kind::kSelf;
    if (!self && draft_model.decoder == nullptr) {
      fail(ErrorKind::kUsage, "recipe {} drafts with another model: name it with --draft-model", recipe.name);
    }
    const Decoder& decoder = self ? *model.decoder : *draft_model.decoder;
    require_fewer_experts(level, recipe, decoder.config());
    decoder.weights().head.resolve(kind.reading);  // throws now, not in the middle of a text
    const bool translated = !self && needs_translation(recipe, model, draft_model);
    const int64_t positions = translated ? translated_capacity(capacity, decoder.config()) : capacity;
    // An output matrix can have more columns than the vocabulary has tokens, for padding, and these must
    // never be drafted; nor may a draft model propose tokens beyond the vocabulary of the model.
    const int32_t tokens =
        std::min(translated ? draft_model.tokenizer->vocab_size() : model.decoder->config().vocab_size,
                 decoder.config().vocab_size);
    std::unique_ptr<NeuralDrafter> drafter;
    if (self) {
      drafter = std::make_unique<NeuralDrafter>(target, kind, DraftCache(), false);
      if (is_sparse(level))
        drafter->own_view(make_view(level, recipe.cache, decoder.cache_shape(), capacity),
                          parse_reading(recipe.reading, "recipe " + recipe.name));
    } else {
      if (draft_evaluator_ == nullptr) {
        const bool small = weight_bytes(decoder.weights(), kind.reading) <= kOneThreadBytes;
        draft_evaluator_ =
            std::make_unique<Evaluator>(target.runner().runner_for_draft_model(decoder, small));
      }
      drafter = std::make_unique<NeuralDrafter>(*draft_evaluator_, kind,
                                                DraftCache(decoder.cache_shape(), positions), true);
    }
    const int32_t count = level.vocabulary > 0 ? std::min(tokens, level.vocabulary) : tokens;
    if (count < decoder.weights().head.columns) {
      std::optional<SharedHeads::Head>& head = shared.levels[drafters_.size()];
      if (!head) {
        head = reduced_head(decoder.weights().head, kind.reading,
                            (self ? model : draft_model).tokenizer.get(), tokens, count, team);
      }
      drafter->own_head(head->weight, head->tokens);
    }
    if (translated) {
      networks_.push_back(nullptr);
      drafters_.push_back(std::make_unique<TranslatingDrafter>(std::move(drafter), draft_model.tokenizer,
                                                               model.tokenizer, positions));
      continue;
    }
    networks_.push_back(drafter.get());
    drafters_.push_back(std::move(drafter));
  }
  for (size_t i = 0; i < drafters_.size(); ++i) drafters_[i]->level = static_cast<int32_t>(i);
  if (recipe.planned) return;  // the planner puts one inside another as it sees fit
  for (size_t i = 0; i + 1 < drafters_.size(); ++i) {
    if (networks_[i] == nullptr) {
      fail(ErrorKind::kUsage,
           "recipe {}: nothing can draft for a draft model with another vocabulary than the model's: leave "
           "out the drafter inside it",
           recipe.name);
    }
    networks_[i]->set_inner(drafters_[i + 1].get(), limits_of(recipe.levels[i + 1]));
  }
}

void DrafterStack::reset_stats() {
  for (const std::unique_ptr<Drafter>& drafter : drafters_) drafter->stats = {};
}

void DrafterStack::observe(const Sequence& sequence) {
  for (const std::unique_ptr<Drafter>& drafter : drafters_) drafter->observe(sequence);
}

}  // namespace verbatim
