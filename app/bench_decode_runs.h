#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench_decode_models.h"
#include "prompt_file.h"

namespace verbatim::app {

/// A prompt set as a model reads it.
struct TokenPrompts {
  std::string name;
  std::vector<std::vector<int32_t>> prompts;
  int64_t cut = 0;  ///< prompts that were too long and lost their beginning
};

/// Encodes prompts. Where one leaves no room for `max_tokens` more in the model's context, the tokens at its
/// beginning go, a beginning-of-sequence token excepted. Throws Error(kUsage) when there is no room for
/// prompts at all.
TokenPrompts encode_prompts(const PromptSet& set, const Model& model, int64_t max_tokens);

/// How one case did on one prompt set.
struct DecodeResult {
  int64_t prompts = 0;
  int64_t timed = 0;             ///< of those, prompts to which both it and plain added a token or more after
                                 ///< the first: the others have no speed
  double tokens_per_second = 0;  ///< geometric mean over the timed prompts
  double speedup = 0;     ///< likewise of the ratio to plain decoding of the same prompt at about the same
                          ///< time
  bool identical = true;  ///< every output is, token for token, that of plain decoding
                          ///< with the same cache
  double agreement = 1;   ///< the share of positions of the outputs at which the tokens are the same
  double perplexity = 0;  ///< of the outputs under the model's own weights; 0 when it was not asked for
  Stats total;            ///< the sums over all prompts
  std::vector<int64_t> generated;  ///< tokens, by prompt
};

/// Adds what another generation took, levels and depths too.
void add(Stats& sum, const Stats& more);

struct DecodeRunOptions {
  GenerateOptions generate;
  int32_t threads = 0;
  bool perplexity = false;
  std::function<void(double)> progress;  ///< called after every generation with the fraction done
};

/// Decodes every prompt with every case, of which the first is plain, and compares them: results[set][case].
/// All cases do a prompt before the next one, each prompt beginning with another case, so that a machine
/// whose speed drifts treats them alike; where there are many, plain runs several times in between, and each
/// is compared with the nearest. Every prompt has a session of its own: nothing that was learnt from another
/// one helps. Before the first prompt each case decodes a few tokens that do not count. Nothing when
/// generate.cancelled ended it.
std::optional<std::vector<std::vector<DecodeResult>>> run_cases(const std::vector<DecodeCase>& cases,
                                                                const std::vector<TokenPrompts>& sets,
                                                                const DecodeRunOptions& options);

}  // namespace verbatim::app
