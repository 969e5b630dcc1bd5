#include <algorithm>
#include <optional>

#include "base/available_memory.h"
#include "base/error.h"
#include "engine/memory_check.h"
#include "engine/model_data.h"
#include "engine/speculator_setup.h"
#include "engine/text_stream.h"
#include "kv/make_cache.h"
#include "speculation/sparse_levels.h"
#include "verbatim/generate.h"

namespace verbatim {

namespace {

int64_t capacity_or_context(const Model& model, int64_t capacity) {
  return capacity > 0 ? std::min<int64_t>(capacity, model.context()) : model.context();
}

bool contains(const std::vector<int32_t>& tokens, int32_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

void check_options(const GenerateOptions& options, const Recipe& recipe, const ModelData& data) {
  if (options.max_tokens < 0) fail(ErrorKind::kUsage, "the number of tokens to generate cannot be negative");
  if (options.prefill_chunk < 1) fail(ErrorKind::kUsage, "the prefill chunk must be at least 1");
  if (std::find(options.stop.begin(), options.stop.end(), "") != options.stop.end()) {
    fail(ErrorKind::kUsage, "a stop string cannot be empty");
  }
  if (recipe.planned) return;  // a planner does without what is not there
  for (const std::string& name : recipe.formats()) {
    if (name == "full") continue;
    if (data.decoder.weights().head.find(parse_format(name, recipe.name)) == nullptr) {
      fail(ErrorKind::kUsage, "recipe {} needs weights in {}: load the model with them", recipe.name, name);
    }
  }
}

void check_prompt(const std::vector<int32_t>& prompt, const Sequence& sequence, int64_t max_tokens,
                  int64_t capacity, int32_t vocab_size) {
  const auto needed = static_cast<int64_t>(sequence.tokens.size() + prompt.size());
  if (needed == 0) bad_input("the prompt is empty: give at least one token of text");
  if (needed + std::min<int64_t>(max_tokens, 1) > capacity) {
    bad_input("the prompt is too long: {} tokens leave no room in a context of {}", needed, capacity);
  }
  for (const int32_t token : prompt) {
    if (token < 0 || token >= vocab_size) {
      bad_input("the prompt has token {}, outside the vocabulary of {} tokens", token, vocab_size);
    }
  }
}

/// One call of generate: takes the tokens that the speculator appends to the sequence into a result.
class Generation {
 public:
  Generation(Sequence& sequence, const ModelData& data, const GenerateOptions& options,
             const Session::OnText& on_text)
      : sequence_(sequence),
        options_(options),
        eos_tokens_(data.checkpoint.config.eos_tokens),
        on_text_(on_text),
        stream_(data.text(), false, options.stop) {}

  void run(Speculator& speculator, int64_t capacity) {
    const size_t first = sequence_.tokens.size();
    if (read_prompt(speculator)) {
      const Stopwatch watch(result.stats.seconds_decode);
      decode(speculator, first, capacity);
    }
    finish(capacity);
    speculator.end(result.stats);
  }

  GenerateResult result;

 private:
  /// Evaluates what the cache does not hold yet, up to the first token. False when it was cancelled before.
  bool read_prompt(Speculator& speculator) {
    const auto length = static_cast<int64_t>(sequence_.tokens.size());
    const int64_t held = std::min(sequence_.cache->length(), length - 1);
    bool known = false;
    for (int64_t done = held;; done = sequence_.cache->length()) {
      if (options_.prefill_progress) {
        options_.prefill_progress(static_cast<double>(done - held) / static_cast<double>(length - held));
      }
      if (known || !go_on()) return known;
      known = speculator.prefill(sequence_, options_.prefill_chunk, result.stats);
    }
  }

  void decode(Speculator& speculator, size_t first, int64_t capacity) {
    while (take(first) && room(capacity) > 0 && go_on()) {
      first = sequence_.tokens.size();
      speculator.step(sequence_, room(capacity), result.stats);
    }
  }

  /// Whether the caller wants another pass.
  bool go_on() { return !options_.cancelled || !options_.cancelled() || end(FinishReason::kCancelled); }

  /// The tokens that may still be generated.
  int64_t room(int64_t capacity) const {
    return std::min(options_.max_tokens - result.stats.generated_tokens,
                    capacity - static_cast<int64_t>(sequence_.tokens.size()));
  }

  /// Takes the sequence's tokens from `first` on until one ends the generation; drops those after it and says
  /// false.
  bool take(size_t first) {
    for (size_t i = first; i < sequence_.tokens.size(); ++i) {
      if (take_token(sequence_.tokens[i])) continue;
      sequence_.tokens.resize(i + 1);
      sequence_.cache->set_length(std::min(sequence_.cache->length(), static_cast<int64_t>(i)));
      return false;
    }
    return true;
  }

  bool take_token(int32_t token) {
    ++result.stats.generated_tokens;
    result.tokens.push_back(token);
    if ((!options_.ignore_eos && contains(eos_tokens_, token)) || contains(options_.stop_tokens, token)) {
      return end(FinishReason::kEndOfSequence);
    }
    if (stream_.push(token)) return end(FinishReason::kStopString);
    return emit() || end(FinishReason::kCancelled);
  }

  bool end(FinishReason reason) {
    result.stats.finish = reason;
    ended_ = true;
    return false;
  }

  /// Hands out the text that became final; false when the caller has heard enough.
  bool emit() {
    const std::string_view piece = stream_.release();
    return piece.empty() || !on_text_ || on_text_(piece);
  }

  void finish(int64_t capacity) {
    FinishReason& reason = result.stats.finish;
    if (!ended_) {
      const bool full = static_cast<int64_t>(sequence_.tokens.size()) >= capacity;
      const bool all = result.stats.generated_tokens >= options_.max_tokens;
      reason = full && !all ? FinishReason::kContext : FinishReason::kLength;
    }
    if (reason != FinishReason::kCancelled) {
      if (reason != FinishReason::kStopString && stream_.finish()) reason = FinishReason::kStopString;
      emit();
    }
    result.text = stream_.text();
  }

  Sequence& sequence_;
  const GenerateOptions& options_;
  const std::vector<int32_t>& eos_tokens_;
  const Session::OnText& on_text_;
  TextStream stream_;
  bool ended_ = false;
};

}  // namespace

struct Session::State {
  State(const Model& model_, int64_t capacity_, int32_t threads)
      : model(model_),
        capacity(capacity_or_context(model_, capacity_)),
        team(threads > 0 ? threads : hardware_threads()),
        evaluator(model_.data().decoder, team),
        sequence{{}, make_cache(cache, model_.data().decoder.cache_shape(), capacity)} {
    // A step holds drafts beyond the end for a moment.
    sequence.tokens.reserve(static_cast<size_t>(capacity) + 1);
  }

  /// Stores keys and values as a recipe wants them. With another cache than before, all tokens will be
  /// evaluated again.
  void use_cache(const CacheOptions& wanted) {
    if (wanted == cache) return;
    sequence.cache = make_cache(wanted, model.data().decoder.cache_shape(), capacity);
    cache = wanted;
    written = 0;
  }

  /// The speculator of a recipe: the one of the last call, with what its drafters have learnt, if that was
  /// the same.
  Speculator& speculator_for(const Recipe& recipe, const std::function<void(double)>& progress) {
    if (speculator == nullptr || speculator_recipe != recipe) {
      const ModelData* const draft = draft_model ? &draft_model->data() : nullptr;
      speculator = make_speculator(recipe, model.data(), draft, evaluator, capacity, team, progress);
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
                         .workspace = pass_workspace_bytes(model.data().checkpoint.config, rows),
                         .held = cache_bytes(held)};
    const bool prepared = speculator != nullptr && speculator_recipe == recipe;
    for (const DraftLevel& level : recipe.levels) {
      const ModelConfig& config = model.data().checkpoint.config;
      memory.draft_cache += dense_cache_bytes(config, copied_positions(level, known));
      if (prepared) memory.held += dense_cache_bytes(config, copied_positions(level, std::min(held, known)));
      if (level.kind != DraftLevel::Kind::kModel || !draft_model) continue;
      const ModelConfig& draft = draft_model->data().checkpoint.config;
      memory.draft_cache += dense_cache_bytes(draft, std::min<int64_t>(length, draft.context));
      memory.held += dense_cache_bytes(draft, std::min<int64_t>(held, draft.context));
    }
    require_memory(memory, available_memory());
  }

  Model model;
  std::optional<Model> draft_model;
  int64_t capacity;
  CacheOptions cache;
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

GenerateResult Session::generate(const std::vector<int32_t>& prompt, const GenerateOptions& options,
                                 const Recipe& recipe, const OnText& on_text) {
  Sequence& sequence = state_->sequence;
  const ModelData& data = state_->model.data();
  check_options(options, recipe, data);
  check_prompt(prompt, sequence, options.max_tokens, state_->capacity, state_->model.vocab_size());
  state_->use_cache(recipe.cache);
  state_->check_memory(prompt, options, recipe);
  Speculator& speculator = state_->speculator_for(recipe, {});
  speculator.begin(options.sampling);
  Generation generation(sequence, data, options, on_text);
  const auto before = static_cast<int64_t>(sequence.tokens.size());
  sequence.tokens.insert(sequence.tokens.end(), prompt.begin(), prompt.end());
  if (options.max_tokens == 0) return std::move(generation.result);
  try {
    generation.run(speculator, state_->capacity);
  } catch (...) {
    truncate(before);
    throw;
  }
  return std::move(generation.result);
}

}  // namespace verbatim
