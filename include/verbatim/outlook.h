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
  int64_t weight_bytes = 0;  ///< about the memory that its weights take; of `auto` at most
  /// About the longest context, in tokens, whose keys and values fit into the memory that is left beside the
  /// weights, and no longer than the model's; 0 where none fits. Nothing if the free memory is not known.
  std::optional<int64_t> longest_context;
};

/// What a model can reach on this machine by the speed of memory and of arithmetic, which were measured for a
/// moment; `verbatim bench` measures the speed of the model itself.
struct Outlook {
  std::optional<int64_t> available_memory;  ///< in bytes; nothing if the system does not say
  /// Bytes of memory per second that all threads read together; 0 where there is too little memory to measure
  /// it.
  double read_bandwidth = 0;
  double operations = 0;         ///< multiplications and additions of BF16 per second, all threads together
  double tokens_per_second = 0;  ///< the most that plain decoding of one sequence reaches
  double prompt_tokens_per_second = 0;  ///< about the tokens of a prompt per second, by products in BF16
  std::vector<RecipeOutlook> recipes;   ///< lossless recipes that the model has weights for or can get them
};

/// Measures this machine for about half a second, with as many threads as compute by default, and says what
/// the model that was inspected can reach on it. Throws what describe_machine() throws, and Error(kMachine)
/// if there are no threads.
Outlook outlook_for(const ModelReport& report);

/// The memory that a model takes with a context of so many tokens: weights, keys and values in BF16. The
/// tokens may be more than the model's context. What is more than an int64_t holds counts as the largest of
/// these.
int64_t memory_with_context(const MemoryEstimate& memory, int64_t tokens);

}  // namespace verbatim
