#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/thread_team.h"
#include "checkpoint/checkpoint.h"
#include "formats/pack_linear.h"

namespace verbatim {

struct GptqPassOptions {
  int bits = 4;
  int64_t window = 512;                       ///< the number of tokens of the text that see one another
  std::function<void(double)> progress = {};  ///< called with the fraction done
  std::function<bool()> cancelled = {};       ///< called between matrices; true ends the work
};

/// The matrices of a model in `int4`, by name (MatrixSpec).
using RoundedWeights = std::map<std::string, PackResult>;

/// Rounds all matrices of a model by GPTQ (gptq.h) in one pass over a text. The pass takes all tokens, at
/// least one, at once; each matrix is rounded when all its inputs are there, and the pass goes on with the
/// rounded one. So the inputs of every matrix are those that it will have when the model runs, which is what
/// GPTQ asks for. A matrix whose inputs are not finite, as those of models with such weights may be, is
/// rounded to nearest.
///
/// Takes memory for the whole model and for what all tokens are within a layer (gptq_pass_memory()). Throws
/// Error(kMachine), saying how much, if that for the tokens is not there. Returns nothing when cancelled.
std::optional<RoundedWeights> round_in_pass(const Checkpoint& checkpoint, std::span<const int32_t> tokens,
                                            const GptqPassOptions& options, ThreadTeam& team);

/// The memory in bytes that round_in_pass() takes besides the model, estimated from above.
int64_t gptq_pass_memory(const ModelConfig& config, int64_t tokens, int64_t window);

}  // namespace verbatim
