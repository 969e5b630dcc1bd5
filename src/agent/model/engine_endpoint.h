#pragma once

#include <functional>
#include <memory>

#include "agent/loop/real_loop.h"
#include "agent/model/endpoint.h"
#include "verbatim/engine.h"
#include "verbatim/generate.h"
#include "verbatim/model.h"
#include "verbatim/recipe.h"

namespace verbatim::agent {

/// How an engine's endpoint tells of the work that the engine does for it. Both may be called on any thread.
struct EngineWatch {
  /// Tokens of a reply came: whether they are its first ones, and how many seconds after it was asked for, or
  /// after the ones before.
  std::function<void(int64_t count, bool first, double seconds)> tokens = {};
  /// A reply has ended, for whatever reason.
  std::function<void(const GenerateResult& result, int64_t prompt_tokens)> ended = {};
};

struct EngineEndpointOptions {
  int64_t context = 0;            ///< the most tokens of a prompt with its reply; 0: the model's context
  int64_t max_prompt_tokens = 0;  ///< of a prompt; 0: the context
  EngineWatch watch = {};
};

/// This program's own engine. Its replies are held to structures, and the requests of a run share what it
/// remembers of their prompts. Loop, model and engine must outlive the endpoint and its streams. A stream
/// that is destroyed waits for nothing: its request ends within one pass.
std::unique_ptr<Endpoint> engine_endpoint(RealLoop& loop, const Model& model, Engine& engine,
                                          const Recipe& recipe, EngineEndpointOptions options = {});

}  // namespace verbatim::agent
