#pragma once

#include "serve/responses/response_writer.h"

namespace verbatim::serve {

/// A response that has no output yet, with what its request asked for.
Json begun_response(const ResponseAnswer& answer);

/// What a response's output adds to the conversation: one message of the assistant.
Message message_of_output(const Json& output);

/// Keeps a response that is complete, if its request wants that, for requests that continue it.
void keep_response(const ResponseAnswer& answer, const Json& response);

}  // namespace verbatim::serve
