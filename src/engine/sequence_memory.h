#pragma once

#include <functional>
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

/// The memory for keys and values of an engine's sequences. Keys and values in BF16 lie in pages of a pool,
/// where a beginning that several sequences have in common is stored once. Keys and values of other types lie
/// in a cache for each sequence, which the next sequence with the same beginning takes over. All members may
/// be called from several threads, for different sequences.
class SequenceMemory {
 public:
  /// `capacity` is the most tokens that a sequence may reach. Throws Error(kMachine) when the memory cannot
  /// be reserved, and Error(kBadInput) when the folder that they are to be kept in cannot be used.
  SequenceMemory(const Model& model, const EngineOptions& options, int64_t capacity);

  /// Throws Error(kMachine) for a request that no free memory could ever suffice for. `draft` is the other
  /// model that the request may draft with, or null. Must precede admit().
  void check(const Request& request, const ModelConfig* draft);

  /// Gives a sequence, which may have a cache already, memory for its tokens, with the keys and values of
  /// those tokens that are remembered. Returns false if there is too little memory beside `running` other
  /// sequences, each of which will soon want more.
  bool admit(Sequence& sequence, const Recipe& recipe, int64_t running);
  /// Reads what the folder has of an admitted sequence's keys and values beyond those that admit() found in
  /// memory. It waits for the disk, until `stopped` says that it need not.
  void read_kept(Sequence& sequence, const Recipe& recipe, const std::function<bool()>& stopped);
  /// Remembers the keys and values of the first `prompt` tokens of a sequence that goes on.
  void remember_prompt(const Sequence& sequence, size_t prompt, const Recipe& recipe);
  /// Takes the cache of a sequence that has ended, and remembers its keys and values if `remember` says so.
  void end(Sequence& sequence, const Recipe& recipe, bool remember);
  /// Frees some memory that no sequence uses. Returns false if there is none.
  bool evict();

  /// Fills in the fields of the statistics that are about memory.
  void describe(EngineStats& stats) const;

 private:
  /// A sequence that has ended, with its cache.
  struct Kept {
    CacheOptions options;
    std::string reading;
    Sequence sequence;
  };

  const ChunkOrigin* origin(const std::string& reading);
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
  std::mutex origins_mutex_;
  std::map<std::string, ChunkOrigin> origins_;  // by reading
  std::unique_ptr<ChunkStore> store_;           // null without a folder
  mutable std::mutex mutex_;
  std::map<std::string, PromptCache> prompts_;  // by the reading that verifies: each has its own numbers
  std::vector<Kept> kept_;                      // the latest last
  int64_t remembered_ = 0;                      // tokens that were not evaluated
  int64_t from_disk_ = 0;                       // part of remembered_
};

/// The cache of a sequence if it is made of pages, else null.
PagedCache* pages_of(const Sequence& sequence);

}  // namespace verbatim
