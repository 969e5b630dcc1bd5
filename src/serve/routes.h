#pragma once

#include <functional>
#include <memory>

#include "serve/context.h"
#include "serve/http.h"

namespace verbatim::serve {

/// Answers a call.
using Endpoint = std::function<void(const Context&, const std::shared_ptr<Call>&)>;

/// The endpoint that a request is for. Throws HttpError(404) for an unknown path, and HttpError(405), with
/// the methods that there are, for another method.
Endpoint find_route(const HttpRequest& request);

}  // namespace verbatim::serve
