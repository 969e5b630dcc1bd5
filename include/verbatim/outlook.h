#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verbatim/inspect.h"

namespace verbatim {

/// What a built-in recipe takes to run a model on this machine.
struct RecipeOutlook {
  std::string name;          ///< as load_recipe() takes it
  int64_t weight_bytes = 0;  ///< about the memory that its weights take
  /// About the longest context, in tokens, whose keys and values fit into the memory that is left beside the
  /// weights, and no longer than the model's; 0 where the weights alone do not fit.
  int64_t longest_context = 0;
};

/// What a model can reach on this machine: bounds by the speed of memory and of arithmetic, which were
/// measured for a moment, and not speeds of the model itself, which `verbatim bench` measures.
struct Outlook {
  std::optional<int64_t> available_memory;  ///< in bytes; nothing if the system does not say
  double read_bandwidth = 0;                ///< bytes of memory per second that all threads read together
  double operations = 0;         ///< multiplications and additions of BF16 per second, all threads together
  double tokens_per_second = 0;  ///< the most that plain decoding of one sequence reaches
  double prompt_tokens_per_second = 0;  ///< the most tokens of a prompt per second
  std::vector<RecipeOutlook> recipes;   ///< lossless recipes that the model has weights for or can get them
};

/// Measures this machine for about a third of a second, with as many threads as compute by default, and says
/// what the model that was inspected can reach on it. Throws what describe_machine() throws.
Outlook outlook_for(const ModelReport& report);

/// The memory that a model takes with a context of so many tokens: weights, keys and values in BF16. The
/// tokens may be more than the model's context.
int64_t memory_with_context(const MemoryEstimate& memory, int64_t tokens);

}  // namespace verbatim
