#pragma once

#include <memory>
#include <string>

#include "agent/loop/real_loop.h"
#include "agent/model/endpoint.h"

namespace verbatim::agent {

struct OpenAiOptions {
  std::string url;           ///< up to and with "/v1"
  std::string model = {};    ///< empty: the server's own choice
  std::string api_key = {};  ///< empty: none
};

/// A model behind `chat/completions`, streamed. Throws Error(kUsage) for an address that is none.
std::unique_ptr<Endpoint> openai_endpoint(RealLoop& loop, OpenAiOptions options);

}  // namespace verbatim::agent
