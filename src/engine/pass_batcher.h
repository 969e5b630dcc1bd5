#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/batch_pace.h"
#include "kv/paged.h"
#include "speculation/pass_runner.h"
#include "verbatim/engine.h"

namespace verbatim {

/// Thrown out of a sequence's pass when its memory was taken for sequences that come before it. The sequence
/// has nothing in its cache any more and begins again with its tokens.
struct Preempted {};

/// Lets sequences share passes. Each runs on a thread of its own, as if it were alone; when all of them wait
/// for a pass, one of the waiting threads evaluates what can be evaluated together. Drafts go first, so that
/// the pass over the whole model finds every sequence there: verification is one ragged pass, with chunks of
/// prompts among it (ORCA, iteration-level scheduling). A pass that drafts is declined where it would take
/// longer than what it may bring is worth to the batch (BatchPace).
///
/// Since rows do not depend on each other, nobody can tell from its logits who shared the pass.
class PassBatcher {
 public:
  /// Where a sequence stands. Lower orders come first: they wait for prompts less and lose their memory last.
  class Member {
   public:
    /// Lower is earlier. Set while it is not attached.
    int64_t order = 0;
    /// The cache that its memory is in, or null.
    PagedCache* pages = nullptr;
    /// The tokens that the memory is for; looked at while the sequence waits.
    const std::vector<int32_t>* tokens = nullptr;

   private:
    friend class PassBatcher;
    std::condition_variable wake_;
    bool attached_ = false;
  };

  /// What happened so far.
  struct Counts {
    EngineStats::Passes whole_model;
    EngineStats::Passes drafts;
    int64_t preemptions = 0;
    int64_t positions_taken = 0;
    int64_t positions_used = 0;
  };

  /// The team outlives the batcher, which alone uses it. `options` says how many rows of prompts join a pass
  /// and whether drafts are weighed. `make_room` frees some memory of the pool that no sequence uses, or says
  /// that there is none. `between_passes` is called now and then.
  PassBatcher(ThreadTeam& team, const EngineOptions& options, std::function<bool()> make_room,
              std::function<void()> between_passes);

  /// From now on passes wait for this sequence,
  void attach(Member& member);
  /// and from now on no longer.
  void detach(Member& member);
  /// How many sequences are attached.
  int64_t size() const;
  Counts counts() const;

  /// Evaluates for a member: with others when it is attached, else by itself as soon as no other pass runs.
  /// Throws Preempted.
  std::unique_ptr<PassRunner> runner(Member& member, const Decoder& decoder, bool small = false);

 private:
  class Runner;
  struct Request;

  Matrix<const float> run(Request& request);
  void lead(std::unique_lock<std::mutex>& lock);
  void count_memory();
  std::vector<Request*> choose_group();
  void reserve_memory(std::vector<Request*>& group);
  Request* last_with_memory() const;
  void end(Request& request);
  void count(const std::vector<Request*>& group);
  void evaluate(const std::vector<Request*>& group, DecoderWorkspace& workspace);
  /// One sequence by itself knows best what it drafts.
  bool weighs_drafts() const { return weigh_drafts_ && attached_ > 1; }
  bool pays(const std::vector<Request*>& group) const;
  DecoderWorkspace& workspace_of(const Decoder& decoder);

  ThreadTeam* team_;
  int64_t prompt_rows_;
  bool weigh_drafts_;
  std::function<bool()> make_room_;
  std::function<void()> between_passes_;

  mutable std::mutex mutex_;
  std::vector<Request*> waiting_;  // in the order of their members
  int64_t attached_ = 0;
  uint64_t turns_ = 0;
  bool leading_ = false;
  Counts counts_;
  BatchPace pace_;

  std::mutex pass_mutex_;                                  // held while the team works
  std::map<const Decoder*, DecoderWorkspace> workspaces_;  // what is in them holds until the next pass
  std::map<const Decoder*, DecoderWorkspace> aside_;       // of members that are not attached
  ThreadTeam one_thread_{1};                               // for small models
  std::vector<Row> rows_;                                  // of the pass
  std::vector<KvCache*> caches_;
  std::vector<int32_t> logits_rows_;
};

}  // namespace verbatim
