#include <algorithm>

#include "base/error.h"
#include "engine/model_data.h"
#include "engine/text_stream.h"
#include "speculation/speculator.h"
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
  if (recipe.needs_mxfp4() && !data.has_mxfp4) {
    fail(ErrorKind::kUsage, "recipe {} needs MXFP4 weights: load the model with them", recipe.name);
  }
}

}  // namespace

struct Session::State {
  State(const Model& model_, int64_t capacity_, int32_t threads)
      : model(model_),
        capacity(capacity_or_context(model_, capacity_)),
        team(threads > 0 ? threads : hardware_threads()),
        evaluator(model_.data().decoder, team),
        sequence{{}, DenseCache(model_.data().decoder.cache_shape(), capacity)} {
    // A step holds drafts beyond the end for a moment.
    sequence.tokens.reserve(static_cast<size_t>(capacity) + 1);
  }

  /// The tokens that may still be generated after the ones already there.
  int64_t room(const GenerateOptions& options, const Stats& stats) const {
    return std::min(options.max_tokens - stats.generated_tokens,
                    capacity - static_cast<int64_t>(sequence.tokens.size()));
  }

  Model model;
  int64_t capacity;
  ThreadTeam team;
  Evaluator evaluator;
  Sequence sequence;
};

Session::Session(const Model& model, int64_t capacity, int32_t threads)
    : state_(std::make_unique<State>(model, capacity, threads)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const std::vector<int32_t>& Session::tokens() const {
  return state_->sequence.tokens;
}

void Session::truncate(int64_t length) {
  Sequence& sequence = state_->sequence;
  if (length < 0 || length >= static_cast<int64_t>(sequence.tokens.size())) return;
  sequence.tokens.resize(static_cast<size_t>(length));
  sequence.cache.set_length(std::min(sequence.cache.length(), length));
}

GenerateResult Session::generate(const std::vector<int32_t>& prompt, const GenerateOptions& options,
                                 const Recipe& recipe, const OnText& on_text) {
  State& state = *state_;
  Sequence& sequence = state.sequence;
  const ModelData& data = state.model.data();
  const ModelConfig& config = data.checkpoint.config;
  check_options(options, recipe, data);
  const size_t needed = sequence.tokens.size() + prompt.size();
  if (needed == 0) bad_input("the prompt is empty: give at least one token of text");
  if (needed >= static_cast<size_t>(state.capacity)) {
    bad_input("the prompt is too long: {} tokens leave no room in a context of {}", needed, state.capacity);
  }
  sequence.tokens.insert(sequence.tokens.end(), prompt.begin(), prompt.end());

  Speculator speculator(recipe, options.sampling);
  GenerateResult result;
  Stats& stats = result.stats;
  if (options.max_tokens == 0) return result;
  TextStream stream(data.text(), false, options.stop);

  // Takes the tokens from `first` on into the result until one ends the generation, and drops those after it.
  const auto take = [&](size_t first) -> bool {
    for (size_t i = first; i < sequence.tokens.size(); ++i) {
      const int32_t token = sequence.tokens[i];
      ++stats.generated_tokens;
      result.tokens.push_back(token);
      bool done = true;
      if ((!options.ignore_eos && contains(config.eos_tokens, token)) ||
          contains(options.stop_tokens, token)) {
        stats.finish = FinishReason::kEndOfSequence;
      } else if (stream.push(token)) {
        stats.finish = FinishReason::kStopString;
      } else {
        done = false;
      }
      if (!done && on_text) {
        const std::string_view piece = stream.release();
        if (!piece.empty() && !on_text(piece)) {
          stats.finish = FinishReason::kCancelled;
          done = true;
        }
      }
      if (done) {
        sequence.tokens.resize(i + 1);
        sequence.cache.set_length(std::min(sequence.cache.length(), static_cast<int64_t>(i)));
        return false;
      }
    }
    return true;
  };

  size_t first = sequence.tokens.size();
  speculator.prefill(sequence, options.prefill_chunk, state.evaluator, stats);
  bool going = take(first);
  {
    const Stopwatch watch(stats.seconds_decode);
    while (going) {
      const int64_t room = state.room(options, stats);
      if (room <= 0) {
        const bool full = stats.generated_tokens < options.max_tokens;
        stats.finish = full ? FinishReason::kContext : FinishReason::kLength;
        break;
      }
      first = sequence.tokens.size();
      speculator.step(sequence, room, state.evaluator, stats);
      going = take(first);
    }
  }
  if (stats.finish != FinishReason::kStopString && stats.finish != FinishReason::kCancelled &&
      stream.finish()) {
    stats.finish = FinishReason::kStopString;
  }
  if (on_text && stats.finish != FinishReason::kCancelled) {
    const std::string_view piece = stream.release();
    if (!piece.empty()) on_text(piece);
  }
  result.text = stream.text();
  return result;
}

}  // namespace verbatim
