#include "engine/decoding_slots.h"

#include <algorithm>

#include "base/error.h"
#include "engine/model_access.h"
#include "speculation/stores.h"

namespace verbatim {

void DecodingSlots::set_draft_model(const Model& model) {
  const std::lock_guard setup(setup_mutex_);
  if (!setups_.empty())
    fail(ErrorKind::kUsage, "an engine's draft model must be given before its first request");
  const std::lock_guard lock(draft_mutex_);
  draft_model_ = model;
}

const ModelData* DecodingSlots::draft_data() const {
  const std::lock_guard lock(draft_mutex_);
  return draft_model_ ? &data_of(*draft_model_) : nullptr;
}

const ModelConfig* DecodingSlots::draft_config() const {
  const ModelData* const data = draft_data();
  return data != nullptr ? &data->checkpoint.config : nullptr;
}

Recipe DecodingSlots::adapted(const Recipe& recipe) const {
  validate(recipe);
  const ModelData* const draft = draft_data();
  return with_stores_of(recipe, data_of(model_).decoder,
                        draft != nullptr ? &draft->decoder.weights() : nullptr);
}

std::unique_ptr<DecodingSlot> DecodingSlots::take(const Recipe& recipe,
                                                  const std::function<void(double)>& progress) {
  {
    const std::lock_guard lock(idle_mutex_);
    const auto idle =
        std::find_if(idle_.begin(), idle_.end(), [&](const auto& slot) { return slot->recipe == recipe; });
    if (idle != idle_.end()) {
      std::unique_ptr<DecodingSlot> slot = std::move(*idle);
      idle_.erase(idle);
      return slot;
    }
  }
  const std::lock_guard lock(setup_mutex_);
  auto setup = std::find_if(setups_.begin(), setups_.end(), [&](const auto& s) { return s.first == recipe; });
  if (setup == setups_.end()) setup = setups_.insert(setups_.end(), {recipe, {}});
  const ModelData& data = data_of(model_);
  auto slot = std::make_unique<DecodingSlot>();
  slot->evaluator = std::make_unique<Evaluator>(batcher_->runner(slot->member, data.decoder));
  slot->recipe = recipe;
  slot->speculator = make_speculator(recipe, data, draft_data(), *slot->evaluator, capacity_, one_thread_,
                                     progress, &setup->second);
  return slot;
}

void DecodingSlots::give_back(std::unique_ptr<DecodingSlot> slot) {
  slot->member.pages = nullptr;
  slot->member.tokens = nullptr;
  const std::lock_guard lock(idle_mutex_);
  idle_.push_back(std::move(slot));
  if (std::ssize(idle_) > most_idle_) idle_.erase(idle_.begin());
}

}  // namespace verbatim
