#pragma once

#include <memory>

#include "serve/context.h"
#include "serve/responses/response_request.h"

namespace verbatim::serve {

/// Answers a request whose tools are those of servers: plans, calls and the answer after them are made here,
/// by the service of the server's options. Throws HttpError(400) for tools that may not be called.
void run_tools(const Context& context, const std::shared_ptr<Call>& call,
               const std::shared_ptr<const ResponseRequest>& request);

}  // namespace verbatim::serve
