#pragma once

#include <functional>
#include <string_view>

#include "engine/model_data.h"
#include "engine/text_stream.h"
#include "speculation/speculator.h"
#include "verbatim/generate.h"

namespace verbatim {

/// Checks a request before anything is computed. Throws Error(kUsage) for options out of range, and when the
/// recipe needs weights that the model was loaded without; and whatever validate() throws for the recipe.
void check_options(const GenerateOptions& options, const Recipe& recipe, const ModelData& data);

/// What holds a generation with these options to their structure; null without one. Throws Error(kBadInput)
/// when the structure allows no text or is too large, or the model has no vocabulary, and Error(kUsage) when
/// no token ends a sequence.
std::shared_ptr<StructureCursor> structure_cursor(const GenerateOptions& options, const ModelData& data);

/// What a sampler is told of these options: the filter, `structure` (of structure_cursor()), which holds the
/// tokens from position `first_generated` on, and the tokens that end the generation.
Constraint constraint_of(const GenerateOptions& options, const ModelData& data,
                         std::shared_ptr<StructureCursor> structure, size_t first_generated);

/// Checks a prompt that is appended to a sequence of `known` tokens. Throws Error(kBadInput) if prompt and
/// sequence are both empty, if the prompt has tokens outside the vocabulary, or if it leaves no room in a
/// sequence of at most `capacity` tokens.
void check_prompt(std::span<const int32_t> prompt, int64_t known, int64_t max_tokens, int64_t capacity,
                  int32_t vocab_size);

/// The most tokens that a sequence may reach: `wanted`, at most the model's context; 0: the context.
int64_t sequence_capacity(const Model& model, int64_t wanted);

/// One answer to a prompt: takes the tokens that a speculator appends to a sequence into a result, until one
/// of them ends it.
class Generation {
 public:
  /// The functions that a generation calls on its way; each may be empty.
  struct Hooks {
    /// Called with each piece of text as it becomes final. Returning false cancels the generation.
    std::function<bool(std::string_view)> on_text = {};
    /// Called before every pass over a prompt and before every step. A reason that it returns ends the
    /// generation there.
    std::function<std::optional<FinishReason>()> stopped = {};
    /// Called before every pass over a prompt. Returns the most tokens of the prompt that the pass may take.
    std::function<int64_t()> prompt_rows = {};
  };

  /// The sequence, the model and the options must outlive the generation. `capacity` is the most tokens that
  /// the sequence may reach.
  Generation(Sequence& sequence, const ModelData& data, const GenerateOptions& options, int64_t capacity,
             Hooks hooks);

  /// Evaluates the tokens that the cache does not hold yet and generates until something ends the generation.
  /// An exception of a pass goes through; once the sequence is as it was before that step, run() may be
  /// called again and goes on.
  void run(Speculator& speculator);

  /// Ends the generation where it is, for a reason from outside.
  void stop(FinishReason reason);

  GenerateResult result;

 private:
  bool read_prompt(Speculator& speculator);
  void decode(Speculator& speculator);
  bool go_on();
  int64_t room() const;
  bool take_new_tokens();
  bool take_token(int32_t token);
  bool end(FinishReason reason);
  bool emit();
  void finish();

  Sequence& sequence_;
  const GenerateOptions& options_;
  const std::vector<int32_t> ends_;  // the tokens that end the generation
  int64_t capacity_;
  Hooks hooks_;
  TextStream stream_;
  size_t taken_;  // the sequence's tokens that are the prompt's or in the result
  bool ended_ = false;
};

}  // namespace verbatim
