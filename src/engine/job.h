#pragma once

#include <memory>
#include <optional>

#include "engine/decoding_slots.h"
#include "engine/generation.h"
#include "engine/token_stream.h"

namespace verbatim {

/// A request of an engine from its arrival to its end, with all that belongs to it.
struct Job {
  Request request;
  int64_t order = 0;  ///< jobs of lower order go first
  std::shared_ptr<TokenStream::State> stream;
  Sequence sequence;
  std::shared_ptr<StructureCursor> structure;  ///< null where the text may be any
  std::unique_ptr<DecodingSlot> slot;
  std::optional<Generation> generation;
  size_t sent = 0;          ///< the number of tokens that the stream has been given
  bool remembered = false;  ///< whether the prompt has been given to the prompt cache

  /// The reason to end the job now, before its generation ends by itself; nothing if it may go on.
  std::optional<FinishReason> stopped() const;
};

}  // namespace verbatim
