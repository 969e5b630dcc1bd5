#pragma once

#include <memory>
#include <optional>

#include "engine/decoding_slots.h"
#include "engine/generation.h"
#include "engine/token_stream.h"

namespace verbatim {

/// A request on its way.
struct Job {
  Request request;
  int64_t order = 0;  ///< lower ones go first
  std::shared_ptr<TokenStream::State> stream;
  Sequence sequence;
  std::unique_ptr<DecodingSlot> slot;
  std::optional<Generation> generation;
  size_t sent = 0;          ///< tokens that the stream has got
  bool remembered = false;  ///< its prompt has been given to the prompt cache

  /// Why it ends before its time, or nothing.
  std::optional<FinishReason> stopped() const;
};

}  // namespace verbatim
