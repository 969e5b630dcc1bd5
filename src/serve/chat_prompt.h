#pragma once

#include <cstdint>
#include <vector>

#include "serve/conversation.h"
#include "serve/models.h"

namespace verbatim::serve {

/// The tokens of a conversation as a model's chat template writes it, with the reply about to begin. Throws
/// HttpError(400) for what the template refuses.
std::vector<int32_t> prompt_of(const LoadedModel& model, const Question& question);

/// Makes options hold a reply to what its question asks: the structure of its format or of calls of tools,
/// the control tokens that calls are written with, and the template's ends of a reply. Throws HttpError(400)
/// for a schema that cannot be kept to.
void hold_to(const LoadedModel& model, const Question& question, GenerateOptions& options);

/// Checks a prompt's length before anything is computed. Throws HttpError(400) with the code
/// "context_length_exceeded".
void check_prompt_length(const LoadedModel& model, const ServerOptions& options, int64_t tokens);

}  // namespace verbatim::serve
