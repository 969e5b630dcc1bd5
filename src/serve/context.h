#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "serve/answer.h"
#include "serve/call.h"
#include "serve/models.h"
#include "serve/responses/response_store.h"

namespace verbatim::serve {

/// The parts of a service that its endpoints use. An endpoint is a function that takes this and a call. It
/// runs on a worker; what it throws is answered as guarded() says.
struct Context {
  const ServerOptions& options;
  Models& models;
  Answers& answers;
  /// For what computes long without the engine: embeddings, scores.
  Workers& computing;
  /// What `previous_response_id` continues.
  ResponseStore& stored_responses;

  /// Goes on with a model: at once if it is loaded, else on a worker once it is. `work` is guarded, and a
  /// model that cannot be loaded is the call's error. `name` empty: the first model.
  void with_model(const std::shared_ptr<Call>& call, std::string_view name,
                  const std::function<void(const std::shared_ptr<LoadedModel>&)>& work) const;

  /// Goes on on the thread that computes. `work` is guarded. Throws HttpError(429) if too much waits there.
  void compute(const std::shared_ptr<Call>& call, std::function<void()> work) const;
  /// The same for a further part of work that has begun, which is never too much. Others have their turns
  /// before it.
  void go_on_computing(const std::shared_ptr<Call>& call, std::function<void()> work) const;
};

}  // namespace verbatim::serve
