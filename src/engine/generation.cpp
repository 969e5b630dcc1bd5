#include "engine/generation.h"

#include <algorithm>

#include "base/error.h"
#include "base/stopwatch.h"
#include "speculation/stores.h"

namespace verbatim {

namespace {

bool contains(const std::vector<int32_t>& tokens, int32_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

/// The tokens that end a generation with these options.
std::vector<int32_t> end_tokens(const GenerateOptions& options, const ModelData& data) {
  std::vector<int32_t> ends = options.stop_tokens;
  if (options.ignore_eos) return ends;
  const std::vector<int32_t>& eos = data.checkpoint.config.eos_tokens;
  ends.insert(ends.end(), eos.begin(), eos.end());
  return ends;
}

}  // namespace

void check_options(const GenerateOptions& options, const Recipe& recipe, const ModelData& data) {
  if (options.max_tokens < 0) fail(ErrorKind::kUsage, "the number of tokens to generate cannot be negative");
  if (options.prefill_chunk < 1) fail(ErrorKind::kUsage, "the prefill chunk must be at least 1");
  if (std::find(options.stop.begin(), options.stop.end(), "") != options.stop.end()) {
    fail(ErrorKind::kUsage, "a stop string cannot be empty");
  }
  if (options.top_logprobs && (*options.top_logprobs < 0 || *options.top_logprobs > kMostTopLogprobs)) {
    fail(ErrorKind::kUsage, "{} likeliest tokens were asked for; 0 to {} are possible", *options.top_logprobs,
         kMostTopLogprobs);
  }
  const int32_t vocabulary = data.checkpoint.config.vocab_size;
  for (const LogitBias& each : options.sampling.logit_bias) {
    if (each.token < vocabulary) continue;
    fail(ErrorKind::kUsage, "a logit bias is for token {}, outside the vocabulary of {} tokens", each.token,
         vocabulary);
  }
  for (const int32_t token : options.shown_tokens) {
    if (token >= 0 && token < vocabulary) continue;
    fail(ErrorKind::kUsage, "token {} is to be shown, outside the vocabulary of {} tokens", token,
         vocabulary);
  }
  validate(recipe);
  check_scheme(recipe, data.checkpoint.config.quantization);
  require_stores(recipe, data.decoder.weights());
}

std::shared_ptr<StructureCursor> structure_cursor(const GenerateOptions& options, const ModelData& data) {
  if (!options.structure) return nullptr;
  data.text();
  std::vector<int32_t> ends = data.checkpoint.config.eos_tokens;
  ends.insert(ends.end(), options.stop_tokens.begin(), options.stop_tokens.end());
  const int32_t vocabulary = data.checkpoint.config.vocab_size;
  std::erase_if(ends, [&](int32_t token) { return token < 0 || token >= vocabulary; });
  if (ends.empty()) {
    fail(ErrorKind::kUsage,
         "a structured reply ends with a token, and there is none: give a stop token of the vocabulary");
  }
  return std::make_shared<StructureCursor>(data.structures->compiled(*options.structure), std::move(ends));
}

Constraint constraint_of(const GenerateOptions& options, const ModelData& data,
                         std::shared_ptr<StructureCursor> structure, size_t first_generated) {
  return {.filter = options.filter,
          .structure = std::move(structure),
          .first_generated = first_generated,
          .vocabulary = data.checkpoint.config.vocab_size,
          .ends = end_tokens(options, data)};
}

void check_prompt(std::span<const int32_t> prompt, int64_t known, int64_t max_tokens, int64_t capacity,
                  int32_t vocab_size) {
  const int64_t needed = known + std::ssize(prompt);
  if (needed == 0) bad_input("the prompt is empty: give at least one token of text");
  if (needed + std::min<int64_t>(max_tokens, 1) > capacity) {
    bad_input(
        "the prompt is too long: {} tokens leave no room in a context of {}; shorten it, or take a model "
        "with a "
        "longer context",
        needed, capacity);
  }
  for (const int32_t token : prompt) {
    if (token < 0 || token >= vocab_size) {
      bad_input("the prompt has token {}, outside the vocabulary of {} tokens", token, vocab_size);
    }
  }
}

int64_t sequence_capacity(const Model& model, int64_t wanted) {
  return wanted > 0 ? std::min<int64_t>(wanted, model.context()) : model.context();
}

Generation::Generation(Sequence& sequence, const ModelData& data, const GenerateOptions& options,
                       int64_t capacity, Hooks hooks)
    : sequence_(sequence),
      options_(options),
      ends_(end_tokens(options, data)),
      capacity_(capacity),
      hooks_(std::move(hooks)),
      stream_(data.text(), false, options.stop, options.shown_tokens),
      taken_(sequence.tokens.size()) {}

void Generation::run(Speculator& speculator) {
  speculator.score_into(options_.top_logprobs ? ScoreSink{&result.logprobs, *options_.top_logprobs}
                                              : ScoreSink{});
  speculator.record_origins(options_.origins ? &result.origins : nullptr);
  speculator.record_steps(options_.steps ? &result.steps : nullptr);
  // Tokens that a pass had given before the sequence lost its memory come first.
  if (take_new_tokens() && room() > 0 && read_prompt(speculator)) {
    const Stopwatch watch(result.stats.seconds_decode);
    decode(speculator);
  }
  finish();
  speculator.end(result.stats);
  speculator.score_into({});
  speculator.record_origins(nullptr);
  speculator.record_steps(nullptr);
}

void Generation::stop(FinishReason reason) {
  end(reason);
  finish();
}

/// Evaluates what the cache does not hold yet, up to the next token. False when it was stopped before.
bool Generation::read_prompt(Speculator& speculator) {
  const auto length = static_cast<int64_t>(sequence_.tokens.size());
  const int64_t held = std::min(sequence_.cache->length(), length - 1);
  bool known = false;
  for (int64_t done = held;; done = sequence_.cache->length()) {
    if (options_.prefill_progress) {
      options_.prefill_progress(static_cast<double>(done - held) / static_cast<double>(length - held));
    }
    if (known || !go_on()) return known;
    const int64_t rows = hooks_.prompt_rows ? hooks_.prompt_rows() : options_.prefill_chunk;
    known = speculator.prefill(sequence_, std::min(rows, options_.prefill_chunk), result.stats);
  }
}

void Generation::decode(Speculator& speculator) {
  while (take_new_tokens() && room() > 0 && go_on()) speculator.step(sequence_, room(), result.stats);
}

/// Whether nobody wants it to end here.
bool Generation::go_on() {
  if (options_.cancelled && options_.cancelled()) return end(FinishReason::kCancelled);
  if (!hooks_.stopped) return true;
  const std::optional<FinishReason> reason = hooks_.stopped();
  return !reason || end(*reason);
}

/// The tokens that may still be generated.
int64_t Generation::room() const {
  return std::min(options_.max_tokens - result.stats.generated_tokens,
                  capacity_ - static_cast<int64_t>(sequence_.tokens.size()));
}

/// Takes the sequence's new tokens until one ends the generation; drops those after it and says false.
bool Generation::take_new_tokens() {
  while (taken_ < sequence_.tokens.size()) {
    if (take_token(sequence_.tokens[taken_++])) continue;
    sequence_.tokens.resize(taken_);
    sequence_.cache->set_length(
        std::min(sequence_.cache->length(), static_cast<int64_t>(sequence_.tokens.size()) - 1));
    return false;
  }
  return true;
}

bool Generation::take_token(int32_t token) {
  ++result.stats.generated_tokens;
  result.tokens.push_back(token);
  if (contains(ends_, token)) return end(FinishReason::kEndOfSequence);
  if (stream_.push(token)) return end(FinishReason::kStopString);
  return emit() || end(FinishReason::kCancelled);
}

bool Generation::end(FinishReason reason) {
  result.stats.finish = reason;
  ended_ = true;
  return false;
}

/// Hands out the text that became final; false when the caller has heard enough.
bool Generation::emit() {
  const std::string_view piece = stream_.release();
  return piece.empty() || !hooks_.on_text || hooks_.on_text(piece);
}

void Generation::finish() {
  FinishReason& reason = result.stats.finish;
  if (!ended_) {
    const bool full = static_cast<int64_t>(sequence_.tokens.size()) >= capacity_;
    const bool all = result.stats.generated_tokens >= options_.max_tokens;
    reason = full && !all ? FinishReason::kContext : FinishReason::kLength;
  }
  if (reason != FinishReason::kCancelled && reason != FinishReason::kDeadline) {
    if (reason != FinishReason::kStopString && stream_.finish()) reason = FinishReason::kStopString;
    emit();
  }
  result.text = stream_.text();
  // A step may have appended more tokens than were taken.
  if (options_.top_logprobs) result.logprobs.resize(result.tokens.size());
  if (options_.origins) result.origins.resize(result.tokens.size());
}

}  // namespace verbatim
