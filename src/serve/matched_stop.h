#pragma once

#include <span>
#include <string>
#include <vector>

#include "verbatim/verbatim.h"

namespace verbatim::serve {

/// Which of `stops` ended an answer that FinishReason::kStopString ended; empty if it was none of them but
/// one of the chat format's. `shown_tokens` are those of the answer's options.
std::string matched_stop(const Model& model, const GenerateResult& result, std::span<const std::string> stops,
                         std::span<const int32_t> shown_tokens = {});

}  // namespace verbatim::serve
