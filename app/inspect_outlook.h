#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "verbatim/verbatim.h"

namespace verbatim::app {

/// Adds the memory that a model takes to the text of `inspect`, with each of `contexts`, in tokens; without
/// any, with its whole context and parts of it.
void add_memory_section(std::string& out, const ModelReport& report, const std::vector<int64_t>& contexts);

/// Adds what a model can reach on this machine and which recipes fit to the text of `inspect`.
void add_outlook_section(std::string& out, const ModelReport& report, const Outlook& outlook);

/// The object `outlook` of `inspect --json`; `contexts` as in add_memory_section().
nlohmann::ordered_json outlook_json(const ModelReport& report, const Outlook& outlook,
                                    const std::vector<int64_t>& contexts);

}  // namespace verbatim::app
