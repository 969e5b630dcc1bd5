#include <algorithm>
#include <optional>

#include "base/available_memory.h"
#include "base/error.h"
#include "base/processors.h"
#include "engine/generation.h"
#include "engine/memory_check.h"
#include "engine/model_access.h"
#include "engine/session_file.h"
#include "engine/speculator_setup.h"
#include "kv/make_cache.h"
#include "verbatim/generate.h"

namespace verbatim {

struct Session::State {
  State(const Model& model_, int64_t capacity_, int32_t threads)
      : model(model_),
        capacity(sequence_capacity(model_, capacity_)),
        team(threads > 0 ? threads : hardware_threads()),
        evaluator(data_of(model_).decoder, team),
        sequence{{}, make_cache(cache, data_of(model_).decoder.cache_shape(), capacity)} {
    // A step holds drafts beyond the end for a moment.
    sequence.tokens.reserve(static_cast<size_t>(capacity) + 1);
  }

  /// Stores keys and values as a recipe wants them. With another cache than before, or numbers of another
  /// reading in it, all tokens will be evaluated again.
  void use_cache(const Recipe& recipe) {
    const CacheOptions& wanted = recipe.cache;
    if (recipe.reading != reading) {
      written = std::max(written, sequence.cache->length());
      sequence.cache->set_length(0);
      reading = recipe.reading;
    }
    if (wanted == cache) return;
    sequence.cache = make_cache(wanted, data_of(model).decoder.cache_shape(), capacity);
    cache = wanted;
    written = 0;
  }

  /// The speculator of a recipe: the one of the last call, with what its drafters have learnt, if that was
  /// the same.
  Speculator& speculator_for(const Recipe& recipe, const std::function<void(double)>& progress) {
    if (speculator == nullptr || speculator_recipe != recipe) {
      const ModelData* const draft = draft_model ? &data_of(*draft_model) : nullptr;
      speculator = make_speculator(recipe, data_of(model), draft, evaluator, capacity, team, progress);
      speculator_recipe = recipe;
    }
    return *speculator;
  }

  /// Refuses a call that would not fit into memory before anything of it is computed.
  void check_memory(const std::vector<int32_t>& prompt, const GenerateOptions& options,
                    const Recipe& recipe) const {
    const auto known = static_cast<int64_t>(sequence.tokens.size() + prompt.size());
    const int64_t length = known + std::min(options.max_tokens, capacity - known);
    const int64_t held = std::min(length, std::max(written, sequence.cache->length()));
    const int64_t rows =
        std::min({known - sequence.cache->length(), options.prefill_chunk, sequence.cache->most_rows()});
    const auto cache_bytes = [this](int64_t positions) {
      return sequence.cache->bytes(round_up(positions, kAttentionChunk));
    };
    ContextMemory memory{.tokens = length,
                         .cache = cache_bytes(length),
                         .workspace = pass_workspace_bytes(data_of(model).checkpoint.config, rows),
                         .held = cache_bytes(held)};
    const ModelConfig& config = data_of(model).checkpoint.config;
    const ModelConfig* const draft = draft_model ? &data_of(*draft_model).checkpoint.config : nullptr;
    memory.draft_cache = draft_cache_bytes(recipe, config, draft, known, length);
    if (speculator != nullptr && speculator_recipe == recipe) {
      memory.held += draft_cache_bytes(recipe, config, draft, std::min(held, known), held);
    }
    require_memory(memory, available_memory());
  }

  Model model;
  std::optional<Model> draft_model;
  int64_t capacity;
  CacheOptions cache;
  std::string reading = "full";  ///< what the cache was filled by
  int64_t written = 0;  ///< the longest that the cache was before it was truncated: that memory is taken
  ThreadTeam team;
  Evaluator evaluator;
  Sequence sequence;
  std::unique_ptr<Speculator> speculator;
  Recipe speculator_recipe;
};

Session::Session(const Model& model, int64_t capacity, int32_t threads)
    : state_(std::make_unique<State>(model, capacity, threads)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const std::vector<int32_t>& Session::tokens() const {
  return state_->sequence.tokens;
}

void Session::prepare(const Recipe& recipe, const std::function<void(double)>& progress) {
  state_->speculator_for(recipe, progress);
}

void Session::set_draft_model(const Model& model) {
  state_->draft_model = model;
  state_->speculator.reset();
}

void Session::truncate(int64_t length) {
  Sequence& sequence = state_->sequence;
  if (length < 0 || length >= static_cast<int64_t>(sequence.tokens.size())) return;
  sequence.tokens.resize(static_cast<size_t>(length));
  state_->written = std::max(state_->written, sequence.cache->length());
  sequence.cache->set_length(std::min(sequence.cache->length(), length));
}

int64_t Session::evaluated() const {
  return state_->sequence.cache->length();
}

void Session::save(const std::filesystem::path& path) const {
  const SavedSession saved{
      .tokens = tokens(), .cache = state_->cache, .reading = state_->reading, .positions = evaluated()};
  write_session(path, saved, *state_->sequence.cache, data_of(state_->model));
}

void Session::restore(const std::filesystem::path& path) {
  const ModelData& data = data_of(state_->model);
  LoadedSession loaded = read_session(path, data);
  SavedSession& saved = loaded.session;
  const auto capacity = static_cast<size_t>(state_->capacity);
  if (saved.tokens.size() > capacity) {
    bad_input("{} holds {} tokens, but the session has room for {}", path.string(), saved.tokens.size(),
              capacity);
  }
  std::unique_ptr<KvCache> cache = make_cache(saved.cache, data.decoder.cache_shape(), state_->capacity);
  const std::span<std::byte> room = cache->stored(saved.positions);
  if (room.size() != loaded.stored.size()) {
    bad_input("{} is damaged: its keys and values are not of the model's size", path.string());
  }
  std::copy(loaded.stored.begin(), loaded.stored.end(), room.begin());
  cache->set_length(saved.positions);
  saved.tokens.reserve(capacity + 1);
  state_->sequence = {std::move(saved.tokens), std::move(cache)};
  state_->cache = saved.cache;
  state_->reading = saved.reading;
  state_->written = saved.positions;
  state_->speculator.reset();
}

GenerateResult Session::generate(const std::vector<int32_t>& prompt, const GenerateOptions& options,
                                 const Recipe& recipe, const OnText& on_text) {
  Sequence& sequence = state_->sequence;
  const ModelData& data = data_of(state_->model);
  check_options(options, recipe, data);
  check_prompt(prompt, std::ssize(sequence.tokens), options.max_tokens, state_->capacity,
               state_->model.vocab_size());
  std::shared_ptr<StructureCursor> structure = structure_cursor(options, data);
  state_->use_cache(recipe);
  state_->check_memory(prompt, options, recipe);
  Speculator& speculator = state_->speculator_for(recipe, {});
  const auto before = static_cast<int64_t>(sequence.tokens.size());
  speculator.begin(options.sampling, constraint_of(options, data, std::move(structure),
                                                   sequence.tokens.size() + prompt.size()));
  sequence.tokens.insert(sequence.tokens.end(), prompt.begin(), prompt.end());
  Generation::Hooks hooks;
  if (on_text) {
    hooks.on_text = [&](std::string_view piece) {
      on_text(piece);
      return !options.cancelled || !options.cancelled();
    };
  }
  Generation generation(sequence, data, options, state_->capacity, std::move(hooks));
  if (options.max_tokens == 0) return std::move(generation.result);
  try {
    generation.run(speculator);
  } catch (...) {
    truncate(before);
    throw;
  }
  return std::move(generation.result);
}

}  // namespace verbatim
