#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verbatim/generate.h"

namespace verbatim {

struct EngineOptions {
  int32_t max_batch = 8;  ///< sequences that are evaluated together at most; others wait for their turn
  /// The most tokens that a sequence may reach, at most the model's context; 0: the context.
  int64_t capacity = 0;
  /// Memory for the keys and values of all sequences in BF16, in bytes. 0: what max_batch sequences of
  /// `capacity` tokens take, but at most half of the memory that is available.
  int64_t cache_bytes = 0;
  /// Remembers beginnings that sequences have had, so that they are not evaluated again.
  bool prompt_cache = true;
  /// Tokens of prompts that join a pass in which other sequences decode. Changes speed, never the text.
  int64_t prompt_rows = 128;
  /// Leaves out drafts that would take all sequences longer than what they bring is worth. Without, recipes'
  /// own rules decide, as they do alone; those of planners know the size of the batch. Changes speed, never
  /// the text.
  bool weigh_drafts = true;
  int32_t threads = 0;  ///< to compute with; 0 takes every processor this process may run on
};

/// What is to be generated.
struct Request {
  std::vector<int32_t> prompt;
  /// Its callbacks are called on a thread of the engine, which they must not wait for.
  GenerateOptions options;
  Recipe recipe;
  int32_t priority = 0;  ///< higher ones go first; among equals, those that came first
  /// Generation ends here at the latest, wherever it is.
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
};

/// The answer to a request, as it comes into being. May be asked by one thread while the engine fills it;
/// cancel() may be called by any. Outlives the engine if need be. Destroying it does not cancel.
class TokenStream {
 public:
  /// What has become final since the last piece: whole characters of text, and the tokens they end with.
  struct Piece {
    std::string text;
    std::vector<int32_t> tokens;
  };

  /// Waits for the next piece; none when the answer is complete or has failed.
  std::optional<Piece> next();
  /// Waits until the answer is complete and returns all of it. Throws the Error that ended it, if one did.
  /// Once.
  GenerateResult wait();
  /// Asks for an early end: what there is by then is the answer.
  void cancel();
  bool done() const;

  struct State;
  explicit TokenStream(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

/// What an engine is doing.
struct EngineStats {
  int64_t waiting = 0;      ///< requests whose turn has not come
  int64_t running = 0;      ///< and those under way
  int64_t finished = 0;     ///< so far, however they ended
  int64_t preemptions = 0;  ///< so far: sequences that lost their memory and were evaluated anew
  /// Passes so far that verified and read prompts, those that drafted, their rows, and what they took.
  struct Passes {
    int64_t count = 0;
    int64_t rows = 0;
    double seconds = 0;
  };
  Passes whole_model;
  Passes drafts;
  int64_t prompt_tokens_remembered = 0;  ///< so far: those that were not evaluated because they were known
  // Memory for keys and values in BF16:
  int64_t cache_bytes = 0;             ///< in all
  int64_t cache_bytes_taken = 0;       ///< of that, in pages of sequences or of remembered beginnings
  int64_t cache_bytes_remembered = 0;  ///< of that, in pages that no sequence uses
  /// Positions that the pages of sequences had room for, and those of them that were for tokens of theirs,
  /// added up over the passes so far.
  int64_t positions_taken = 0;
  int64_t positions_used = 0;
};

/// Runs many sequences through one model at once. Sequences join and leave at every step (continuous
/// batching), long prompts are read in chunks beside others that decode, memory for keys and values is
/// paged, and beginnings that sequences have in common are kept once. Where memory runs out, those that came
/// last give theirs back and are evaluated again later.
///
/// The bytes of an answer depend on its request alone: not on who shares the batch, when they joined, what is
/// remembered or who lost memory, as far as its recipe promises the bytes of plain decoding.
///
/// All members may be called from several threads.
class Engine {
 public:
  /// Throws Error(kMachine) when the memory cannot be reserved.
  explicit Engine(const Model& model, const EngineOptions& options = {});
  /// Cancels what is not finished.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Takes a request in. Throws, before anything is computed, what Session::generate() throws.
  TokenStream submit(Request request);
  /// Waits for the answer.
  GenerateResult generate(Request request) { return submit(std::move(request)).wait(); }

  /// Gives the model that recipes with a `model` level draft with, before the first request.
  void set_draft_model(const Model& model);
  /// Gets what a recipe needs before its first use, as Session::prepare() does.
  void prepare(const Recipe& recipe, const std::function<void(double)>& progress = {});

  EngineStats stats() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace verbatim
