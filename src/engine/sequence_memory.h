#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "drafting/sequence.h"
#include "kv/paged.h"
#include "kv/prompt_cache.h"
#include "verbatim/engine.h"

namespace verbatim {

struct ModelConfig;

/// Where the keys and values of an engine's sequences are: those in BF16 in pages of a pool, with beginnings
/// that several have in common only once; others in caches of their own, which go over to the next sequence
/// that begins alike. All members may be called from several threads, for different sequences.
class SequenceMemory {
 public:
  /// `capacity`: the most tokens of a sequence. Throws Error(kMachine) when the memory cannot be reserved.
  SequenceMemory(const Model& model, const EngineOptions& options, int64_t capacity);

  /// Refuses a request that could never be run: throws Error(kMachine). `draft`: the other model that it may
  /// draft with, or null.
  void check(const Request& request, const ModelConfig* draft) const;

  /// Gives a sequence, with a cache or without one, room for the tokens that it has, and what is known of
  /// them. False when there is too little beside `running` others, each of which will soon want more.
  bool admit(Sequence& sequence, const Recipe& recipe, int64_t running);
  /// Remembers the first `prompt` tokens of a sequence that goes on,
  void remember_prompt(const Sequence& sequence, size_t prompt, const Recipe& recipe);
  /// or all of one that has ended; it has no cache afterwards.
  void end(Sequence& sequence, const Recipe& recipe, bool remember);
  /// Frees some memory that no sequence uses, or says that there is none.
  bool evict();

  /// Fills in what the statistics say of memory.
  void describe(EngineStats& stats) const;

 private:
  /// One that has ended, in a cache of its own.
  struct Kept {
    CacheOptions options;
    std::string reading;
    Sequence sequence;
  };

  PromptCache& prompts(const Recipe& recipe);
  int64_t unused_units() const;
  bool admit_pages(PagedCache& pages, const std::vector<int32_t>& tokens, const Recipe& recipe,
                   int64_t running);
  std::unique_ptr<KvCache> own_cache(const Recipe& recipe, const std::vector<int32_t>& tokens,
                                     int64_t running);
  int64_t reusable_pages() const;
  int64_t reusable_caches() const;

  Model model_;
  EngineOptions options_;
  int64_t capacity_;
  PagePool pool_;
  mutable std::mutex mutex_;
  std::map<std::string, PromptCache> prompts_;  // by the reading that verifies: each has its own numbers
  std::vector<Kept> kept_;                      // the latest last
  int64_t remembered_ = 0;                      // tokens that were not evaluated
};

/// The cache of a sequence, if it is made of pages; or null.
PagedCache* pages_of(const Sequence& sequence);

}  // namespace verbatim
