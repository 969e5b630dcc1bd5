#include "engine/pass_batcher.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/stopwatch.h"
#include "drafting/sequence.h"
#include "engine/worthwhile_rows.h"

namespace verbatim {

namespace {

/// Drafts of other models take whole prompts in: no more rows than this join one pass.
constexpr int64_t kMostDraftRows = 512;

/// So many rows without logits may be tokens that were just accepted, and up to 32 that a structure forces;
/// more are of a prompt.
constexpr int64_t kFewPending = 40;

/// A pass with more rows without logits than this, for one sequence, is not timed: they take less than the
/// others, and they may be of a short prompt.
constexpr int64_t kMostPendingTimed = 8;

/// The factor by which drafts must gain more than the batch usually does. Drafts are chosen for what they
/// promise, so those that are chosen promise rather too much, and n-grams make the usual gain larger than the
/// pace tells.
constexpr double kMargin = 1.25;

}  // namespace

/// What a member waits for.
struct PassBatcher::Request {
  Member* member;
  const Decoder* decoder;
  bool small;
  std::span<const Row> rows;
  const PassKind* kind;
  KvCache* cache;
  int64_t first_logits_row;
  PassRunner::ExpectedGain expected_gain;  // if it drafts
  std::optional<PassRunner::Offer> offer;  // if a part of its rows may be left out
  const PassCosts* costs;                  // of passes that verify; null: unknown
  const PassCosts* draft_costs;            // of passes that draft; null: unknown
  bool target;                             // of the model that verifies
  uint64_t turn = 0;                       // when it was made

  enum class State { kWaiting, kDone, kPreempted, kFailed };
  State state = State::kWaiting;
  Matrix<const float> logits = {};
  int64_t first_row = 0;  // in the pass
  PassRunner::PassTiming pass = {};
  std::exception_ptr error = nullptr;

  /// Whether it wants logits, of all rows but a few that its cache lacks.
  bool decodes() const { return first_logits_row <= kFewPending && first_logits_row < std::ssize(rows); }
  /// Whether its rows take the time of rows that decode.
  bool timed() const { return decodes() && first_logits_row <= kMostPendingTimed; }
  /// The path probabilities of the nodes that may be left out.
  std::span<const float> offered() const { return offer ? offer->paths : std::span<const float>(); }
  /// The number of rows that may not be left out.
  int64_t certain_rows() const { return std::ssize(rows) - std::ssize(offered()); }
  /// Leaves out all offered nodes but the first `count`.
  void keep(int64_t count) {
    if (count == std::ssize(offered())) return;
    rows = offer->keep(count);
    offer->paths = offer->paths.first(static_cast<size_t>(count));
  }
  void settle() { state = error ? State::kFailed : State::kDone; }
  int64_t positions() const {
    int32_t last = 0;
    for (const Row& row : rows) last = std::max(last, row.position);
    return int64_t{last} + 1;
  }
  bool joins(const Request& other) const {
    const auto same = [](const PassKind& a, const PassKind& b) {
      return a.reading == b.reading && a.drafts == b.drafts && a.layers == b.layers &&
             a.experts == b.experts && a.head == b.head && a.cache == b.cache && a.sparse == nullptr &&
             b.sparse == nullptr && a.observer == nullptr && b.observer == nullptr;
    };
    return this == &other || (decoder == other.decoder && same(*kind, *other.kind));
  }
};

class PassBatcher::Runner : public PassRunner {
 public:
  Runner(PassBatcher& batcher, Member& member, const Decoder& decoder, bool small)
      : batcher_(&batcher), member_(&member), decoder_(&decoder), small_(small) {}

  Matrix<const float> run(std::span<const Row> rows, const PassKind& kind, KvCache& cache,
                          int64_t first_logits_row) override {
    Request request{.member = member_,
                    .decoder = decoder_,
                    .small = small_,
                    .rows = rows,
                    .kind = &kind,
                    .cache = &cache,
                    .first_logits_row = first_logits_row,
                    .expected_gain = expected_gain_,
                    .offer = std::exchange(offer_, std::nullopt),
                    .costs = costs_,
                    .draft_costs = draft_costs_,
                    .target = target_};
    const Matrix<const float> logits = batcher_->run(request);
    first_row_ = request.first_row;
    last_ = request.pass;
    return logits;
  }
  void keep_path(int64_t last, KvCache& cache) override {
    decoder_->keep_path(first_row_ + last, cache, batcher_->workspace_of(*decoder_));
  }
  PassTiming last_pass() const override { return last_; }
  void expect_gain(const ExpectedGain& gain) override { expected_gain_ = gain; }
  void offer(const Offer& offer) override { offer_ = offer; }
  bool chooses() const override {
    const std::lock_guard lock(batcher_->mutex_);
    return batcher_->weighs_drafts();
  }
  void plan_by(const PassCosts& verifying, const PassCosts* drafting) override {
    costs_ = &verifying;
    draft_costs_ = drafting;
  }
  KeepThresholds keep_thresholds() const override {
    const std::lock_guard lock(batcher_->mutex_);
    return batcher_->weighs_drafts() ? batcher_->pace_.keep_thresholds(batcher_->attached_)
                                     : KeepThresholds{};
  }
  void observe_draft(int64_t kept, bool cut) override {
    const std::lock_guard lock(batcher_->mutex_);
    batcher_->pace_.step(kept, cut);
  }
  void observe_step(int64_t kept) override {
    const std::lock_guard lock(batcher_->mutex_);
    batcher_->trials_.kept(kept);
  }
  bool gains_by_drafts() const override {
    const std::lock_guard lock(batcher_->mutex_);
    batcher_->trial_asked_ = true;
    return !batcher_->weighs_drafts() || batcher_->trials_.drafts(batcher_->attached_);
  }
  const Decoder& decoder() const override { return *decoder_; }
  int threads() const override { return small_ ? 1 : batcher_->team_->size(); }
  std::unique_ptr<PassRunner> runner_for_draft_model(const Decoder& other, bool small) override {
    auto runner = std::make_unique<Runner>(*batcher_, *member_, other, small);
    runner->target_ = false;
    return runner;
  }

 private:
  PassBatcher* batcher_;
  Member* member_;
  const Decoder* decoder_;
  bool small_;
  int64_t first_row_ = 0;
  ExpectedGain expected_gain_;
  std::optional<Offer> offer_;
  const PassCosts* costs_ = nullptr;
  const PassCosts* draft_costs_ = nullptr;
  bool target_ = true;
  PassTiming last_;
};

PassBatcher::PassBatcher(ThreadTeam& team, const EngineOptions& options, std::function<bool()> make_room,
                         std::function<void()> between_passes)
    : team_(&team),
      prompt_rows_(options.prompt_rows),
      weigh_drafts_(options.weigh_drafts),
      make_room_(std::move(make_room)),
      between_passes_(std::move(between_passes)) {}

std::unique_ptr<PassRunner> PassBatcher::runner(Member& member, const Decoder& decoder, bool small) {
  return std::make_unique<Runner>(*this, member, decoder, small);
}

/// The buffers of the passes of a model; the same ones from the first call on.
DecoderWorkspace& PassBatcher::workspace_of(const Decoder& decoder) {
  const std::lock_guard lock(mutex_);
  return workspaces_[&decoder];
}

void PassBatcher::attach(Member& member) {
  {
    const std::lock_guard lock(pass_mutex_);
    aside_.clear();
  }
  const std::lock_guard lock(mutex_);
  member.attached_ = true;
  ++attached_;
}

void PassBatcher::detach(Member& member) {
  const std::lock_guard lock(mutex_);
  if (!member.attached_) return;
  member.attached_ = false;
  --attached_;
  // It may be the one that the others wait for.
  if (!waiting_.empty()) waiting_.front()->member->wake_.notify_one();
}

int64_t PassBatcher::size() const {
  const std::lock_guard lock(mutex_);
  return attached_;
}

PassBatcher::Counts PassBatcher::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

Matrix<const float> PassBatcher::run(Request& request) {
  if (!request.member->attached_) {
    const std::lock_guard lock(pass_mutex_);
    if (!request.cache->reserve(request.positions())) {
      fail(ErrorKind::kMachine, "there is no memory left for keys and values");
    }
    evaluate({&request}, aside_[request.decoder]);
    request.settle();
  } else {
    std::unique_lock lock(mutex_);
    request.turn = turns_++;
    const auto later = [](const Request* a, const Request* b) { return a->member->order < b->member->order; };
    waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), &request, later), &request);
    while (request.state == Request::State::kWaiting) {
      if (!leading_ && std::ssize(waiting_) == attached_) {
        try {
          lead(lock);
        } catch (...) {  // out of memory for the lists of a pass: the others go on without this one
          if (!lock.owns_lock()) lock.lock();
          leading_ = false;
          std::erase(waiting_, &request);
          throw;
        }
      } else {
        request.member->wake_.wait(lock);
      }
    }
  }
  if (request.state == Request::State::kPreempted) throw Preempted();
  if (request.state == Request::State::kFailed) std::rethrow_exception(request.error);
  return request.logits;
}

/// Whether what the group drafts is worth its time to the batch.
bool PassBatcher::pays(const std::vector<Request*>& group) const {
  if (!weighs_drafts() || !group.front()->kind->drafts || !group.front()->target) return true;
  double promised = 0.0;
  int64_t rows = 0;
  int64_t verified = 0;
  for (const Request* const request : group) {
    if (!request->decodes()) return true;
    const std::span<const float> nodes = request->offered();
    promised += std::accumulate(nodes.begin(), nodes.end(), request->expected_gain.tokens);
    rows += std::ssize(request->rows);
    verified += std::ssize(request->rows) - request->first_logits_row;
  }
  return pace_.pays(promised, rows, verified, attached_);
}

/// The tokens per second that drafts must gain beyond, for the costs that a request's planner knows.
double PassBatcher::least_rate(const Request& request) const {
  return kMargin * usual_rate(attached_, pace_.kept(), *request.costs, request.draft_costs);
}

/// Takes those requests out of a group that drafts whose drafting is not worth its time to the batch, and
/// returns them; nodes of inner drafts that are not worth theirs are left out.
std::vector<PassBatcher::Request*> PassBatcher::choose_drafting(std::vector<Request*>& group) const {
  const Request& first = *group.front();
  std::vector<Request*> declined;
  const bool planned = std::all_of(group.begin(), group.end(), [](const Request* r) {
    return r->costs != nullptr && r->expected_gain.costs != nullptr && r->target;
  });
  if (!planned || !weighs_drafts()) {
    if (!pays(group)) declined.swap(group);
    return declined;
  }
  // Caches must be brought up to date whatever it costs, and some recipes must draft.
  if (std::any_of(group.begin(), group.end(),
                  [](const Request* r) { return !r->decodes() || std::isinf(r->expected_gain.tokens); }))
    return declined;
  const PassCosts& drafting = *first.expected_gain.costs;
  const double rate = least_rate(first);
  const std::vector<int64_t> kept = choose_nodes(group, rate, drafting);
  std::vector<DraftingShare> shares;
  for (size_t i = 0; i < group.size(); ++i) {
    const PassRunner::ExpectedGain& gain = group[i]->expected_gain;
    const std::span<const float> nodes = group[i]->offered().first(static_cast<size_t>(kept[i]));
    shares.push_back({.tokens = std::accumulate(nodes.begin(), nodes.end(), gain.tokens - gain.otherwise),
                      .rows = group[i]->certain_rows() + kept[i],
                      .verified = gain.drafted + 1});
  }
  int64_t waiting = 0;
  for (const Request* const request : waiting_) {
    if (!request->kind->drafts) waiting += std::ssize(request->rows);
  }
  std::vector<bool> taken = worthwhile_shares(shares, waiting, rate, drafting, *first.costs);
  if (pace_.trial_due() && std::count(taken.begin(), taken.end(), true) == 0) {
    // Drafts that would gain if they were kept: perhaps they are, by now.
    for (DraftingShare& share : shares) share.tokens = 1.0;
    taken = worthwhile_shares(shares, waiting, rate, drafting, *first.costs);
  }
  std::vector<Request*> takes_part;
  for (size_t i = 0; i < group.size(); ++i) {
    (taken[i] ? takes_part : declined).push_back(group[i]);
    if (taken[i]) group[i]->keep(kept[i]);
  }
  group = std::move(takes_part);
  return declined;
}

/// How many nodes of each draft that a group offers are worth their rows in a pass.
std::vector<int64_t> PassBatcher::choose_nodes(const std::vector<Request*>& group, double rate,
                                               const PassCosts& costs) {
  std::vector<std::span<const float>> offers;
  int64_t rows = 0;
  for (const Request* const request : group) {
    offers.push_back(request->offered());
    rows += request->certain_rows();
  }
  return worthwhile_nodes(offers, rows, rate, costs);
}

/// Leaves out the drafted rows of a pass that verifies which are not worth their time to the batch.
void PassBatcher::choose_rows(const std::vector<Request*>& group) const {
  const auto planned = std::find_if(group.begin(), group.end(),
                                    [](const Request* r) { return r->offer && r->costs != nullptr; });
  if (planned == group.end() || !weigh_drafts_) return;
  const std::vector<int64_t> kept = choose_nodes(group, least_rate(**planned), *(*planned)->costs);
  for (size_t i = 0; i < group.size(); ++i) group[i]->keep(kept[i]);
}

/// What is evaluated next, of all that is waited for.
std::vector<PassBatcher::Request*> PassBatcher::choose_group() {
  std::vector<Request*> group;
  const auto draft = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Request* request) { return request->kind->drafts; });
  if (draft != waiting_.end()) {
    int64_t rows = 0;
    for (auto i = draft; i != waiting_.end(); ++i) {
      if (!(*draft)->joins(**i)) continue;
      rows += std::ssize((*i)->rows);
      if (!group.empty() && rows > kMostDraftRows) break;
      group.push_back(*i);
    }
    return group;
  }
  // Who has waited for longest says in which reading. Rows without logits are a prompt's; those who come
  // later wait for theirs.
  const Request& longest = **std::min_element(
      waiting_.begin(), waiting_.end(), [](const Request* a, const Request* b) { return a->turn < b->turn; });
  int64_t prompt_rows = 0;
  for (Request* const request : waiting_) {
    if (!longest.joins(*request)) continue;
    const int64_t rows = request->first_logits_row;
    if (prompt_rows > 0 && rows > 0 && prompt_rows + rows > prompt_rows_) {
      request->turn = turns_++;  // what it waits for now is those before it, not another reading
      continue;
    }
    prompt_rows += rows;
    group.push_back(request);
  }
  return group;
}

void PassBatcher::end(Request& request) {
  std::erase(waiting_, &request);
  request.member->wake_.notify_one();
}

/// The sequence that loses its memory first.
PassBatcher::Request* PassBatcher::last_with_memory() const {
  for (size_t i = waiting_.size(); i-- > 0;) {
    const PagedCache* const pages = waiting_[i]->member->pages;
    if (pages != nullptr && !pages->pages().empty()) return waiting_[i];
  }
  return nullptr;
}

/// Sees to it that what the group writes has its place, if need be at the cost of those who come last.
void PassBatcher::reserve_memory(std::vector<Request*>& group) {
  for (size_t i = 0; i < group.size();) {
    Request& request = *group[i];
    if (request.cache->reserve(request.positions())) {
      ++i;
      continue;
    }
    if (make_room_()) continue;
    Request* const victim = last_with_memory();
    if (victim == nullptr) {
      request.error = std::make_exception_ptr(Error(
          ErrorKind::kMachine, "there is no memory left for keys and values: give the engine more of it"));
      request.state = Request::State::kFailed;
      end(request);
      group.erase(group.begin() + static_cast<ptrdiff_t>(i));
      continue;
    }
    ++counts_.preemptions;
    victim->member->pages->release();
    victim->state = Request::State::kPreempted;
    end(*victim);
    const auto lost = static_cast<size_t>(std::find(group.begin(), group.end(), victim) - group.begin());
    if (lost == group.size()) continue;
    if (lost < i) --i;
    group.erase(group.begin() + static_cast<ptrdiff_t>(lost));
  }
}

void PassBatcher::count(const std::vector<Request*>& group) {
  const Request& first = *group.front();
  const PassRunner::PassTiming& pass = first.pass;
  const bool drafts = first.kind->drafts;
  EngineStats::Passes& counted = drafts ? counts_.drafts : counts_.whole_model;
  ++counted.count;
  counted.rows += pass.rows;
  counted.seconds += pass.seconds;
  if (!drafts) count_trial(group);
  // What rows of prompts take says little of what those of decoding do.
  if (!first.target || pass.prompts) return;
  drafts ? pace_.draft_pass(pass.rows, pass.seconds) : pace_.whole_pass(pass.rows, pass.seconds);
}

/// Counts a pass over the whole model, with the drafts before it, for what the batch gains by drafts.
void PassBatcher::count_trial(const std::vector<Request*>& group) {
  // Where nobody asked whether to draft, passes without drafts say nothing of what drafts would have gained.
  if (!weighs_drafts() || !std::exchange(trial_asked_, false)) {
    trials_.interrupted();
    return;
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  trials_.pass(attached_, std::ssize(group), group.front()->pass.prompts,
               std::chrono::duration<double>(now).count());
}

/// Adds up how much of the memory of those who wait is for tokens that they have, evaluated or not.
void PassBatcher::count_memory() {
  for (const Request* const request : waiting_) {
    const PagedCache* const pages = request->member->pages;
    if (pages == nullptr) continue;
    counts_.positions_taken += pages->capacity();
    const int64_t known = std::min<int64_t>(std::ssize(*request->member->tokens), pages->capacity());
    counts_.positions_used += std::max<int64_t>(known, pages->length());
  }
}

/// Evaluates one pass for those who wait.
void PassBatcher::lead(std::unique_lock<std::mutex>& lock) {
  leading_ = true;
  std::vector<Request*> group = choose_group();
  std::vector<Request*> declined;
  if (group.front()->kind->drafts) {
    declined = choose_drafting(group);
  } else {
    choose_rows(group);
  }
  reserve_memory(group);
  for (Request* const request : declined) {
    if (request->state != Request::State::kWaiting) continue;  // its memory was taken
    request->settle();                                         // without logits
    end(*request);
  }
  count_memory();
  if (!group.empty()) {
    lock.unlock();
    between_passes_();
    {
      const std::lock_guard working(pass_mutex_);
      evaluate(group, workspace_of(*group.front()->decoder));
    }
    lock.lock();
    if (!group.front()->error) count(group);
    for (Request* const request : group) {
      request->settle();
      end(*request);
    }
  }
  leading_ = false;
}

/// Evaluates requests that join each other in one pass. Leaves their states to the caller.
void PassBatcher::evaluate(const std::vector<Request*>& group, DecoderWorkspace& workspace) {
  const Request& first = *group.front();
  rows_.clear();
  caches_.clear();
  logits_rows_.clear();
  for (Request* const request : group) {
    request->first_row = std::ssize(rows_);
    for (Row row : request->rows) {
      row.sequence = static_cast<int32_t>(caches_.size());
      if (row.parent != Row::kPrevious) row.parent += static_cast<int32_t>(request->first_row);
      rows_.push_back(row);
    }
    for (auto row = request->first_row + request->first_logits_row; row < std::ssize(rows_); ++row) {
      logits_rows_.push_back(static_cast<int32_t>(row));
    }
    caches_.push_back(request->cache);
  }
  try {
    ThreadTeam& team = first.small ? one_thread_ : *team_;
    const bool timed = std::all_of(group.begin(), group.end(), [](const Request* r) { return r->timed(); });
    PassRunner::PassTiming pass{.rows = std::ssize(rows_), .seconds = 0.0, .prompts = !timed};
    Matrix<const float> logits;
    {
      const Stopwatch watch(pass.seconds);
      logits = first.decoder->forward(rows_, *first.kind, caches_, logits_rows_, workspace, team);
    }
    int64_t row = 0;
    for (Request* const request : group) {
      const int64_t count = std::ssize(request->rows) - request->first_logits_row;
      if (count > 0) request->logits = logits.slice(row, count);
      row += count;
      request->pass = pass;
    }
  } catch (...) {
    for (Request* const request : group) request->error = std::current_exception();
  }
}

}  // namespace verbatim
