#include "speculation/drafter_stack.h"

#include "base/error.h"
#include "speculation/ngram_drafter.h"

namespace verbatim {

namespace {

/// Below so many bytes of weights a pass is over before a second thread has woken up.
constexpr int64_t kOneThreadBytes = int64_t{8} << 20;

int64_t weight_bytes(const DecoderWeights& weights, Reading reading) {
  const auto of = [&](const LinearWeight& weight) { return weight.store(reading).bytes(); };
  int64_t bytes = of(weights.head);
  for (const LayerWeights& layer : weights.layers) {
    bytes += of(layer.qkv) + of(layer.output) + of(layer.gate_up) + of(layer.down);
  }
  return bytes;
}

}  // namespace

DrafterStack::DrafterStack(const Recipe& recipe, Evaluator& target, const TextModel& model,
                           const TextModel& draft_model, int64_t capacity, ThreadTeam& team) {
  for (const DraftLevel& level : recipe.levels) {
    if (level.kind == DraftLevel::Kind::kNgram) {
      drafters_.push_back(std::make_unique<NgramDrafter>(level, model.decoder->config().vocab_size));
      networks_.push_back(nullptr);
      continue;
    }
    PassKind kind(parse_reading(level.reading, "recipe " + recipe.name));
    kind.layers = level.layers;
    const bool self = level.kind == DraftLevel::Kind::kSelf;
    if (!self && draft_model.decoder == nullptr) {
      fail(ErrorKind::kUsage, "recipe {} drafts with another model: name it with --draft-model", recipe.name);
    }
    const Decoder& decoder = self ? *model.decoder : *draft_model.decoder;
    decoder.weights().head.resolve(kind.reading);  // throws now, not in the middle of a text
    std::unique_ptr<NeuralDrafter> drafter;
    if (self) {
      drafter = std::make_unique<NeuralDrafter>(target, kind, DraftCache(), false);
    } else {
      if (draft_evaluator_ == nullptr) {
        const bool small = weight_bytes(decoder.weights(), kind.reading) <= kOneThreadBytes;
        if (small) one_thread_ = std::make_unique<ThreadTeam>(1);
        draft_evaluator_ = std::make_unique<Evaluator>(decoder, small ? *one_thread_ : team);
      }
      drafter = std::make_unique<NeuralDrafter>(*draft_evaluator_, kind,
                                                DraftCache(decoder.cache_shape(), capacity), true);
    }
    if (level.vocabulary > 0 && level.vocabulary < decoder.config().vocab_size) {
      drafter->own_head(
          std::make_unique<LinearWeight>(first_columns(decoder.weights().head, level.vocabulary)));
    }
    networks_.push_back(drafter.get());
    drafters_.push_back(std::move(drafter));
  }
  if (recipe.planned) return;  // the planner puts one inside another as it sees fit
  for (size_t i = 0; i + 1 < drafters_.size(); ++i) {
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
