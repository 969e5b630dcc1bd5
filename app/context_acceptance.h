#pragma once

#include <span>
#include <string>
#include <vector>

#include "context_bench.h"

namespace verbatim::app {

/// The acceptance that an earlier `bench context` wrote to contexts.json, for each of the recipes. Throws
/// Error(kBadInput) when the file is no such thing, or a recipe is not in it or was not drafted `length`
/// deep.
std::vector<ContextAcceptance> read_acceptance(const std::string& path, std::span<const std::string> recipes,
                                               int32_t length);

}  // namespace verbatim::app
