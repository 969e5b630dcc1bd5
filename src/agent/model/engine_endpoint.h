#pragma once

#include <memory>

#include "agent/loop/real_loop.h"
#include "agent/model/endpoint.h"
#include "verbatim/engine.h"
#include "verbatim/model.h"
#include "verbatim/recipe.h"

namespace verbatim::agent {

/// This program's own engine. Its replies are held to structures, and the requests of a run share what it
/// remembers of their prompts. A prompt with its reply has `context` tokens at most, or, if that is 0, those
/// of the model's context. Loop, model and engine must outlive the endpoint and its streams.
std::unique_ptr<Endpoint> engine_endpoint(RealLoop& loop, const Model& model, Engine& engine,
                                          const Recipe& recipe, int64_t context = 0);

}  // namespace verbatim::agent
