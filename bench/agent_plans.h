#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace verbatim::bench {

/// Prints how many plans of a model are valid and the same plain and speculative, and what share of their
/// tokens the grammar drafted: for the first questions of ParallelQA in the folder `data` (0: a hundred), as
/// a run asks for plans, once at temperature 0 and once at 1. Throws Error(kBadInput) if not all of them are.
void measure_plans(const std::string& model, const std::filesystem::path& data, int64_t questions, bool json);

}  // namespace verbatim::bench
