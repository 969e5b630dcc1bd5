#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verbatim/generate.h"

namespace verbatim {

/// How an engine runs: how many sequences at a time, and with how much memory.
struct EngineOptions {
  /// The most sequences that are evaluated together, 1 to 1024; further requests wait for their turn.
  int32_t max_batch = 8;
  /// The most tokens that a sequence may reach, at most the model's context; 0: the context.
  int64_t capacity = 0;
  /// Memory for the keys and values of all sequences in BF16, in bytes. 0: as much as max_batch sequences of
  /// `capacity` tokens take, but at most half of the memory that is available.
  int64_t cache_bytes = 0;
  /// Remembers the beginnings of earlier sequences, so that they are not evaluated again.
  bool prompt_cache = true;
  /// The folder in which the remembered beginnings of sequences with keys and values in BF16 are kept as
  /// well, so that an engine that is made later with the same model finds them again. Several engines may
  /// share one. It is made if it does not exist. Empty, or without prompt_cache: nothing is kept on disk.
  /// Changes speed, never the text.
  std::filesystem::path cache_dir = {};
  /// The most bytes that lie in cache_dir: beyond, the chunks that were not used for longest are deleted.
  int64_t cache_dir_bytes = int64_t{4} << 30;
  /// The most tokens of prompts that join a pass in which other sequences decode. Changes speed, never the
  /// text.
  int64_t prompt_rows = 128;
  /// Leaves out drafts whose passes would delay all sequences by more than the drafted tokens gain, and all
  /// drafts of lossless recipes while a batch has been measured to be faster without. Without this option,
  /// each recipe's own stop rule decides, as it does for one sequence alone. Changes speed, never the text.
  bool weigh_drafts = true;
  /// Threads to compute with; 0 takes one for every core that this process may use.
  int32_t threads = 0;
};

/// A prompt for an engine to continue, and how.
struct Request {
  /// The tokens to continue.
  std::vector<int32_t> prompt = {};
  /// The engine calls the callbacks among the options on a thread of its own, which they must not block.
  GenerateOptions options = {};
  /// The recipe to decode with.
  Recipe recipe = {};
  /// Requests of higher priority go first; among equals, the request that came first.
  int32_t priority = 0;
  /// When generation ends at the latest, with what there is by then; nothing: never.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  /// Called after each piece that the stream gets and once more when the answer is complete or has failed, so
  /// that a caller with many streams need not wait for any: TokenStream::poll() then has the piece. It is
  /// called on a thread of the engine, or on the one that submits the request or destroys the engine. The
  /// last call may come after TokenStream::wait(), next() or done() has returned on another thread; the
  /// engine keeps the function until then. It must not throw, block, or call the engine; it may call the
  /// stream.
  std::function<void()> notify = {};
};

/// The answer to a request, as it comes into being. One thread may ask for pieces while the engine adds them;
/// cancel() may be called by any thread. A stream may outlive its engine. Destroying a stream does not cancel
/// the request.
class TokenStream {
 public:
  /// The part of an answer that became final since the piece before: text that never ends
  /// within a UTF-8 character still being written, the tokens that the text ends with, and the tokens'
  /// log-probabilities and origins if they were asked for.
  struct Piece {
    std::string text;
    std::vector<int32_t> tokens;
    std::vector<ScoredToken> logprobs;
    std::vector<TokenOrigin> origins;
  };

  /// Waits for the next piece and returns it; nothing when the answer is complete or has failed.
  std::optional<Piece> next();
  /// Returns the next piece if there is one, and never waits. Nothing means that there is none yet, or, if
  /// done() said before this call that the answer is complete, that there will be none.
  std::optional<Piece> poll();
  /// Waits until the answer is complete and returns all of it; to be called once. Throws the Error that ended
  /// the answer, if one did.
  GenerateResult wait();
  /// Cancels the request: generation ends before its next step, and what there is by then is the answer.
  void cancel();
  /// Whether the answer is complete or has failed.
  bool done() const;

  struct State;
  explicit TokenStream(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

/// The requests that an engine has now, and the work that it has done since it was made.
struct EngineStats {
  int64_t waiting = 0;      ///< requests now whose turn has not come
  int64_t running = 0;      ///< requests now that are being answered
  int64_t finished = 0;     ///< requests so far that have ended, for whatever reason
  int64_t preemptions = 0;  ///< how often so far a sequence lost its memory and was evaluated anew
  /// Passes of one kind so far, with the rows of all their sequences and the time they took.
  struct Passes {
    int64_t count = 0;
    int64_t rows = 0;
    double seconds = 0;
  };
  Passes whole_model;                    ///< passes that verified or read prompts
  Passes drafts;                         ///< passes that drafted
  int64_t prompt_tokens_remembered = 0;  ///< tokens of prompts so far that need not be evaluated
  int64_t prompt_tokens_from_disk = 0;   ///< part of prompt_tokens_remembered: read from the cache_dir
  /// Failures so far to read, write or delete in the cache_dir. None of them fails a request.
  int64_t disk_cache_errors = 0;
  int64_t cache_bytes = 0;             ///< memory for keys and values in BF16, in all
  int64_t cache_bytes_taken = 0;       ///< part of cache_bytes: pages of sequences or remembered beginnings
  int64_t cache_bytes_remembered = 0;  ///< part of cache_bytes: pages that no sequence uses
  int64_t positions_taken = 0;  ///< positions in the pages of sequences, added up over the passes so far
  int64_t positions_used = 0;   ///< part of positions_taken: positions that held a token
};

/// Runs many sequences through one model at once. Sequences join and leave at every step (continuous
/// batching), long prompts are read in chunks while other sequences decode, memory for keys and values is
/// paged, and a beginning that sequences have in common is kept once. Where memory runs out, the sequences
/// that came last give theirs back and are evaluated again later.
///
/// The bytes of an answer depend on its request alone, if its recipe is lossless: not on the other sequences
/// of the batch, on when they joined, on remembered beginnings or on lost memory.
///
/// All members may be called from several threads.
class Engine {
 public:
  /// Throws Error(kUsage) for options out of range, Error(kMachine) when the memory cannot be reserved, and
  /// Error(kBadInput) when the cache_dir cannot be made or read.
  explicit Engine(const Model& model, const EngineOptions& options = {});
  /// Cancels every request that is not finished, and waits for the cancelled ones to end. What is still to be
  /// written to the cache_dir is written, for ten seconds at most.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Takes a request in and returns its answer to be. Throws what Session::generate() throws, before anything
  /// is computed.
  TokenStream submit(Request request);
  /// Takes a request in and waits for its whole answer.
  GenerateResult generate(Request request) { return submit(std::move(request)).wait(); }

  /// Gives the model that recipes with a `model` level draft with. Throws Error(kUsage) after the first
  /// request.
  void set_draft_model(const Model& model);
  /// Gets what a recipe needs before its first use, as Session::prepare() does.
  void prepare(const Recipe& recipe, const std::function<void(double)>& progress = {});

  /// A recipe as this engine runs it, which may differ from the recipe that is given if that is planned: its
  /// levels draft from the weights that the model was loaded with, and levels without any are left out.
  /// Throws Error(kBadInput) for a recipe that is not valid.
  Recipe adapted(const Recipe& recipe) const;

  /// The engine's statistics at this moment.
  EngineStats stats() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace verbatim
