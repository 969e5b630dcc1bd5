#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace verbatim::bench {

/// What to measure the speed of structured replies with.
struct StructuresSpeedPlan {
  std::string model;                 ///< a path
  std::vector<std::string> schemas;  ///< JSON texts
  std::vector<std::string> prompts;  ///< the i-th schema is asked for behind the i-th of them
  int32_t rounds = 5;                ///< how often each reply is generated and timed
  int64_t max_tokens = 400;          ///< tokens of a reply at most
  int32_t threads = 0;               ///< 0: one per processor
};

/// The schemas among the lines of a text, at most `limit`, that are objects of two properties or more, all of
/// them required and no others allowed.
std::vector<std::string> schemas_of_fixed_keys(const std::string& text, size_t limit);

/// Generates structured replies, and free text of as many tokens behind the same prompts, with the recipes
/// plain and auto, at temperatures 0 and 1, in turns, and writes their speeds to standard output. Throws
/// Error(kUsage) without schemas or prompts.
void measure_structures_speed(const StructuresSpeedPlan& plan);

}  // namespace verbatim::bench
