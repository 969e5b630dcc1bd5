#pragma once

#include <memory>
#include <optional>

#include "engine/generation.h"
#include "engine/pass_batcher.h"
#include "engine/token_stream.h"

namespace verbatim {

/// What a sequence decodes with. A lane is used by one sequence at a time, and by the next with what its
/// drafters have learnt.
struct Lane {
  PassBatcher::Member member;
  std::unique_ptr<Evaluator> evaluator;
  Recipe recipe;
  std::unique_ptr<Speculator> speculator;
};

/// A request on its way.
struct Job {
  Request request;
  int64_t order = 0;  ///< lower ones go first
  std::shared_ptr<TokenStream::State> stream;
  Sequence sequence;
  PagedCache* pages = nullptr;  ///< the sequence's cache, if it is a paged one
  std::unique_ptr<Lane> lane;
  std::optional<Generation> generation;
  size_t sent = 0;          ///< tokens that the stream has got
  bool remembered = false;  ///< its prompt has been given to the prompt cache

  /// Why it ends before its time, or nothing.
  std::optional<FinishReason> stopped() const;
};

}  // namespace verbatim
