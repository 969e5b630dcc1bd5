#pragma once

#include <functional>
#include <string_view>

#include "engine/model_data.h"
#include "engine/text_stream.h"
#include "speculation/speculator.h"
#include "verbatim/generate.h"

namespace verbatim {

/// Throws Error(kUsage) for options that cannot be followed, or weights that the recipe needs and the model
/// was loaded without, and what validate() throws of the recipe.
void check_options(const GenerateOptions& options, const Recipe& recipe, const ModelData& data);

/// Throws Error(kBadInput) for a prompt that is empty, has unknown tokens or, after `known` tokens, leaves no
/// room in a sequence of at most `capacity`.
void check_prompt(std::span<const int32_t> prompt, int64_t known, int64_t max_tokens, int64_t capacity,
                  int32_t vocab_size);

/// The most tokens that a sequence may reach: `wanted`, at most the model's context; 0: the context.
int64_t sequence_capacity(const Model& model, int64_t wanted);

/// One answer to a prompt: takes the tokens that a speculator appends to a sequence into a result, until one
/// of them ends it.
class Generation {
 public:
  /// What else wants to have a say.
  struct Hooks {
    /// Hears each piece of text as it becomes final; false cancels.
    std::function<bool(std::string_view)> on_text = {};
    /// Asked before every pass over a prompt and before every step: a reason to end there, or none.
    std::function<std::optional<FinishReason>()> stopped = {};
    /// Asked likewise: the most tokens of the prompt that the next pass may take.
    std::function<int64_t()> prompt_rows = {};
  };

  /// The sequence, the model and the options outlive the generation. `capacity`: the most tokens that the
  /// sequence may reach.
  Generation(Sequence& sequence, const ModelData& data, const GenerateOptions& options, int64_t capacity,
             Hooks hooks);

  /// Evaluates what the cache does not hold yet and generates until something ends it. Whatever a pass throws
  /// goes through; once the sequence is as it was before that step, it may be called again and goes on.
  void run(Speculator& speculator);

  /// Ends it where it is, for a reason from outside.
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
  const std::vector<int32_t>& eos_tokens_;
  int64_t capacity_;
  Hooks hooks_;
  TextStream stream_;
  size_t taken_;  // the sequence's tokens that are the prompt's or in the result
  bool ended_ = false;
};

}  // namespace verbatim
