#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/bench_decode_runs.h"
#include "bench/context_measurement.h"

namespace verbatim::bench {

/// The acceptance that an earlier `bench context` wrote to contexts.json, for each of the recipes. Throws
/// Error(kBadInput) when the file is no such thing, or a recipe is not in it or was not drafted `length`
/// deep.
std::vector<ContextAcceptance> read_acceptance(const std::string& path, std::span<const std::string> recipes,
                                               int32_t length);

/// The share of the positions that a case decoded at which it met some of the past as codes: short prompts
/// never leave the buffer, and say nothing about drafts from codes.
double share_beyond_buffer(const app::DecodeCase& one, const std::vector<app::TokenPrompts>& sets,
                           const std::vector<app::DecodeResult>& results);

}  // namespace verbatim::bench
