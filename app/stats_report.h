#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "verbatim/verbatim.h"

namespace verbatim::app {

/// Adds what a planner expected of drafts and passes, what its table of costs says of them, and what planning
/// took, in the names of `generate --json`.
void add_planning(nlohmann::ordered_json& object, const Stats& stats);
/// Adds what a generation took to an object, in the names of `generate --json` (docs/command-line.md): from
/// "tokens_per_second" to "planning_percent".
void add_stats(nlohmann::ordered_json& object, const Stats& stats);

/// The same for people, in several lines that end with a line break: where the time went, how often drafts
/// were kept at each depth, how many a step kept, and what each level did.
std::string stats_report(const Stats& stats, const Recipe& recipe);

/// What a generation took in one line for people: "generated 128 tokens at 95.2 tokens/s; ...".
std::string summary(const Stats& stats, const Recipe& recipe);

}  // namespace verbatim::app
