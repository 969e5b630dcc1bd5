#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/loop/loop.h"
#include "agent/model/endpoint.h"

namespace verbatim::agent {

/// How fast a scripted model is.
struct ScriptedRates {
  double tokens_per_second = 60;
  double prompt_tokens_per_second = 2000;
};

/// A model that says what a function makes of the conversation, a token at a time, as fast as a real one of
/// the given rates would. It is there to measure all that is around a model. Four bytes of text count as a
/// token, which is about what English takes.
class ScriptedEndpoint : public Endpoint {
 public:
  using Script = std::function<std::string(const ModelRequest&)>;
  ScriptedEndpoint(Loop& loop, ScriptedRates rates, Script script)
      : loop_(loop), rates_(rates), script_(std::move(script)) {}

  std::unique_ptr<ModelStream> start(ModelRequest request, ModelHooks hooks) override;

  /// The tokens that a text is counted as.
  static int64_t tokens_of(std::string_view text);

 private:
  Loop& loop_;
  ScriptedRates rates_;
  Script script_;
};

}  // namespace verbatim::agent
