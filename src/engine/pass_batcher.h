#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "drafting/pass_runner.h"
#include "engine/batch_pace.h"
#include "engine/draft_trials.h"
#include "kv/paged.h"
#include "verbatim/engine.h"

namespace verbatim {

/// Thrown by a sequence's pass when its memory was taken for sequences that come before it. The cache of the
/// sequence is then empty, and its tokens must be evaluated again.
struct Preempted {};

/// Lets sequences share passes. Each sequence runs on a thread of its own, as if it were alone. When all of
/// them wait for a pass, one of the waiting threads evaluates those passes together that can be. Drafting
/// passes go first, so that all sequences take part in the pass over the whole model: verification is one
/// pass over drafts of different lengths, with chunks of prompts among them (iteration-level scheduling, as
/// in Orca). A drafting pass is declined if it is not worth its time to the batch (BatchPace). Of planned
/// recipes, which know what passes cost, it decides when all drafts of a pass are known which sequences draft
/// on and which drafted rows are verified (worthwhile_rows.h). Sequences of lossless recipes draft nothing
/// while the batch is faster without (DraftTrials).
///
/// Rows do not depend on each other, so the logits of a sequence do not depend on the sequences it shares
/// passes with.
class PassBatcher {
 public:
  /// One sequence as the batcher knows it. Members of lower order come first: their prompts are read first,
  /// and their memory is taken last.
  class Member {
   public:
    /// The place of the sequence among all; lower is earlier. It may be set only while the member is not
    /// attached.
    int64_t order = 0;
    /// The sequence's cache, if that is made of pages of the pool; else null.
    PagedCache* pages = nullptr;
    /// The tokens of the sequence. The batcher reads them while the sequence waits for a pass.
    const std::vector<int32_t>* tokens = nullptr;

   private:
    friend class PassBatcher;
    std::condition_variable wake_;
    bool attached_ = false;
  };

  /// Statistics since the batcher was made.
  struct Counts {
    EngineStats::Passes whole_model;
    EngineStats::Passes drafts;
    int64_t preemptions = 0;
    int64_t positions_taken = 0;
    int64_t positions_used = 0;
  };

  /// `team` outlives the batcher, and nobody else uses it. `options` says how many rows of prompts join a
  /// pass and whether drafting passes may be declined. `make_room` frees some memory of the pool that no
  /// sequence uses; it returns false if there is none. `between_passes` is called between passes, though not
  /// between all of them.
  PassBatcher(ThreadTeam& team, const EngineOptions& options, std::function<bool()> make_room,
              std::function<void()> between_passes);

  /// Makes a sequence one of the batch. Until detach(), no shared pass begins before this sequence wants a
  /// pass.
  void attach(Member& member);
  /// Ends what attach() began: passes no longer wait for this sequence.
  void detach(Member& member);
  /// The number of attached sequences.
  int64_t size() const;
  Counts counts() const;

  /// Makes a runner that evaluates the passes of a member: together with other members' while it is attached,
  /// else by itself as soon as no other pass runs. The runner's run() throws Preempted.
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
  void count_trial(const std::vector<Request*>& group);
  void evaluate(const std::vector<Request*>& group, DecoderWorkspace& workspace);
  /// Whether drafting passes may be declined. The drafts of a single sequence are left to its own stop rule,
  /// unless it offered them while there were others.
  bool weighs_drafts() const { return weigh_drafts_ && attached_ > 1; }
  bool pays(const std::vector<Request*>& group) const;
  double least_rate(const Request& request) const;
  std::vector<Request*> choose_drafting(std::vector<Request*>& group) const;
  void choose_rows(const std::vector<Request*>& group) const;
  static std::vector<int64_t> choose_nodes(const std::vector<Request*>& group, double rate,
                                           const PassCosts& costs);
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
  DraftTrials trials_;
  bool trial_asked_ = false;  // whether a sequence asked since the last pass over the whole model

  std::mutex pass_mutex_;                                  // held while the team works
  std::map<const Decoder*, DecoderWorkspace> workspaces_;  // what is in them holds until the next pass
  std::map<const Decoder*, DecoderWorkspace> aside_;       // of members that are not attached
  ThreadTeam one_thread_{1};                               // for small models
  std::vector<Row> rows_;                                  // of the pass
  std::vector<KvCache*> caches_;
  std::vector<int32_t> logits_rows_;
};

}  // namespace verbatim
