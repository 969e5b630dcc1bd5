#pragma once

#include <cstdint>
#include <string>

#include "serve/ids.h"
#include "serve/json.h"
#include "verbatim/generate.h"

namespace verbatim::serve {

/// What all objects of an answer of OpenAI's begin with.
struct ReplyHead {
  std::string id;
  std::string object;  ///< "chat.completion", ...
  std::string model;
  int64_t created = unix_time();

  Json json() const {
    return {{"id", id},
            {"object", object},
            {"created", created},
            {"model", model},
            {"system_fingerprint", system_fingerprint()}};
  }
};

/// OpenAI's word for why a choice ended: "stop" or "length".
inline const char* finish_word(FinishReason reason) {
  return reason == FinishReason::kLength || reason == FinishReason::kContext ? "length" : "stop";
}

}  // namespace verbatim::serve
