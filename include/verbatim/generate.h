#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verbatim/logprobs.h"
#include "verbatim/model.h"
#include "verbatim/recipe.h"
#include "verbatim/sampling.h"
#include "verbatim/structure.h"

namespace verbatim {

/// How a generation chooses tokens, where it ends, and which results it gives beside the text.
struct GenerateOptions {
  SamplingOptions sampling = {};
  /// The most tokens to generate; 0 evaluates nothing.
  int64_t max_tokens = 128;
  /// Goes on after a token that ends a sequence.
  bool ignore_eos = false;
  /// Generation ends before the first of these strings in the text. No string may be empty.
  std::vector<std::string> stop = {};
  /// Generation also ends with any of these tokens, whose text is left out.
  std::vector<int32_t> stop_tokens = {};
  /// Control tokens whose spelling in the vocabulary ("[TOOL_CALLS]") becomes part of the text, where they
  /// add nothing otherwise. Tokens that are not control tokens are text anyway, and one that ends the
  /// generation is left out.
  std::vector<int32_t> shown_tokens = {};
  /// Prompt tokens per pass, at least 1. Changes speed and memory, never the text.
  int64_t prefill_chunk = 512;
  /// Cancels the generation by returning true: it ends there, and what was generated until then is the
  /// result. Asked before every pass over a prompt, before every step, and after every piece of text that a
  /// Session hands out.
  std::function<bool()> cancelled = {};
  /// Told how much of the prompt is evaluated, from 0 to 1: once before the first pass over it and after
  /// each.
  std::function<void(double)> prefill_progress = {};
  /// Says which tokens may come next; empty: all of them.
  TokenFilter filter = {};
  /// Holds the reply to a structure: tokens that cannot lead to one of its texts are ruled out, and the
  /// tokens that end a sequence (`stop_tokens` too) are allowed exactly where the text is complete. Where the
  /// structure leaves one text only, the tokenizer's own next token of it is the only one allowed, unless
  /// `filter`, a bias of minus infinity or `stop_tokens` rule it out, in which case other tokens of the text
  /// are. `max_tokens` and `stop` may end a reply before that. Applies together with `filter` and the logit
  /// bias. Before anything is computed, Error(kBadInput) says that the structure allows no text or is too
  /// large, or that the model has no vocabulary, and Error(kUsage) that no token ends a sequence.
  /// In the middle of a reply Error(kBadInput) may say that the structure is too ambiguous to be followed,
  /// and Error(kUsage) that structure, filter and logit bias together leave no token.
  std::optional<Structure> structure = {};
  /// Fills GenerateResult::logprobs, with this many likeliest tokens at every place (0 to kMostTopLogprobs);
  /// nothing leaves them out, which saves the time of computing them.
  std::optional<int32_t> top_logprobs = {};
  /// Fills GenerateResult::origins.
  bool origins = false;
  /// Fills GenerateResult::steps.
  bool steps = false;
};

/// Why a generation ended.
enum class FinishReason {
  kLength,         ///< max_tokens were generated
  kEndOfSequence,  ///< the model ended the sequence, or said a stop token
  kStopString,     ///< a stop string came
  kContext,        ///< the sequence reached its capacity
  kCancelled,      ///< the caller cancelled it
  kDeadline,       ///< the request's deadline passed
};

/// The name of a reason: "length", "eos", "stop", "context", "cancelled" or "deadline".
std::string_view finish_reason_name(FinishReason reason);

/// How a generated token came into the text. Under a lossless recipe an origin says something about the work
/// alone, since the token is the one that plain decoding would have produced.
struct TokenOrigin {
  enum class Kind : uint8_t {
    kPlain,      ///< no drafted token stood at this place
    kDrafted,    ///< it was drafted, and the model kept it
    kCorrected,  ///< the model chose it over the token that was drafted for this place
  };
  Kind kind = Kind::kPlain;
  /// The level that drafted for this place, as an index into Stats::levels and the levels of
  /// Engine::adapted(); -1 for a plain token, and kStructure where the structure left one text only. Where
  /// one level drafts for another, it is the level that had the token first.
  int32_t level = -1;
  /// The level of tokens that GenerateOptions::structure drafted.
  static constexpr int32_t kStructure = -2;
  /// How sure the drafter was of the token that it drafted, 0 to 1; 0 for a plain token.
  float confidence = 0;

  bool operator==(const TokenOrigin&) const = default;
};

/// The name of an origin: "plain", "drafted" or "corrected".
std::string_view origin_name(TokenOrigin::Kind kind);

/// One step of decoding: what was drafted and what the model kept of it.
struct DecodingStep {
  int64_t position = 0;      ///< tokens that the sequence had before the step
  int64_t drafted = 0;       ///< tokens proposed to the model
  int64_t accepted = 0;      ///< proposed tokens that it kept
  int64_t draft_passes = 0;  ///< passes of all drafters
  int64_t rows = 0;          ///< rows of the pass that verified

  bool operator==(const DecodingStep&) const = default;
};

/// The fate of drafted tokens at one depth: 0 is the first drafted token of a step.
struct DepthStats {
  int64_t drafted = 0;   ///< steps that drafted this deep
  int64_t accepted = 0;  ///< steps among them whose text took a draft of this depth
};

/// The work that one level of drafting did for the level above it.
struct LevelStats {
  /// The level. A planned recipe goes without levels that the model has no weights for, so its place in the
  /// recipe says nothing.
  DraftLevel level;
  int64_t drafted = 0;   ///< tokens that the level proposed
  int64_t accepted = 0;  ///< proposed tokens that the level above kept
  int64_t passes = 0;    ///< evaluations of a model; 0 for n-grams
  double seconds = 0;    ///< time of proposing, the levels below included

  /// How well a planner's table of costs describes the level's passes. 0 without a planner.
  struct Diagnostics {
    double seconds_passes = 0;  ///< time of the passes alone
    double table_seconds = 0;   ///< time of exactly these passes according to the table
  };
  Diagnostics diagnostics;
};

/// How often the planner chose a way to draft: "plain", "self", "self <- ngram", ... The plan "structure"
/// counts the steps for which GenerateOptions::structure drafted all up to the end, so that the planner was
/// not asked.
struct PlanStats {
  std::string name;
  int64_t steps = 0;
};

/// The expectations of a recipe's planner about drafts and passes, for comparison with the times that these
/// took. All times are in seconds, and 0 without a planner. The table of costs counts as it was measured, not
/// as it was adjusted since.
struct PlannerDiagnostics {
  double expected_draft = 0;   ///< drafting, as the planner expected it, with what it had learnt
  double expected_verify = 0;  ///< the model's passes, as the planner expected them
  double table_draft = 0;      ///< the drafters' passes according to the table, translated drafts' left out
  double table_verify = 0;     ///< the model's passes according to the table; compare Stats::seconds_verify
  double seconds_draft_passes = 0;  ///< the passes of table_draft, as measured
};

/// The cost of a generation and the fate of its drafts. Times are in seconds.
struct Stats {
  int64_t prompt_tokens = 0;       ///< tokens of the prompt that were evaluated, remembered ones left out
  int64_t generated_tokens = 0;    ///< tokens that were generated
  int64_t drafted = 0;             ///< tokens proposed to the model
  int64_t accepted = 0;            ///< proposed tokens that verification kept
  int64_t structure_steps = 0;     ///< steps whose draft had tokens from the structure
  int64_t structure_drafted = 0;   ///< tokens among `drafted` of the only text that the structure allowed
  int64_t structure_accepted = 0;  ///< those among `accepted`
  int64_t target_passes = 0;       ///< passes in the verifying reading while decoding
  int64_t draft_passes = 0;        ///< passes of all drafters
  int64_t fallbacks = 0;           ///< steps whose drafting ended because the drafter was unsure
  int64_t rollbacks = 0;           ///< steps in which the model rejected a draft
  double seconds_prefill = 0;      ///< time until the first token was known
  double seconds_decode = 0;       ///< time after that
  double seconds_draft = 0;        ///< part of the decoding time: proposing
  double seconds_verify = 0;       ///< part of the decoding time: the model's passes
  double seconds_sampling = 0;     ///< part of the decoding time: choosing tokens after verification
  double seconds_planning = 0;     ///< part of the decoding time: the planner
  std::vector<LevelStats> levels;  ///< the levels of the recipe, in its order
  std::vector<DepthStats> depths;  ///< by depth of the drafts
  std::vector<int64_t> lengths;    ///< steps by how many drafts they kept
  std::vector<PlanStats> plans;    ///< the choices of the planner of a planned recipe
  PlannerDiagnostics diagnostics;
  FinishReason finish = FinishReason::kLength;

  /// Accepted over drafted tokens; 0 when none was drafted.
  double acceptance_rate() const;
  /// Tokens gained per pass of the model while decoding (1 for plain decoding).
  double mean_accepted_length() const;
  /// Tokens after the first, per second of decoding; 0 when there are none.
  double tokens_per_second() const;
  /// The planner's share of the decoding time, in percent.
  double planning_percent() const;
  /// The decoding time that is neither drafting, verifying, sampling nor planning: text, bookkeeping.
  double seconds_overhead() const;
};

/// The outcome of a generation.
struct GenerateResult {
  /// The text, without the tokens and strings that only ended it.
  std::string text;
  /// The generated tokens, a final end-of-sequence or stop token included.
  std::vector<int32_t> tokens;
  /// The log-probability of each of `tokens`, if GenerateOptions::top_logprobs asked for them; empty
  /// otherwise.
  std::vector<ScoredToken> logprobs;
  /// The origin of each of `tokens`, if GenerateOptions::origins asked for them; empty otherwise.
  std::vector<TokenOrigin> origins;
  /// Every step, if GenerateOptions::steps asked for them; empty otherwise. The tokens that they append come
  /// after the first of `tokens`, which the prompt gives; the last step may append more than were taken.
  std::vector<DecodingStep> steps;
  Stats stats;
};

/// One sequence of tokens with its keys and values, to which prompts and generated tokens are appended. Not
/// for use from several threads at once; different sessions of a model may run on different threads. An
/// Engine runs many sequences at a time and remembers prompts; a Session is one sequence that its caller
/// steers: its tokens can be looked at, cut off, saved and restored.
class Session {
 public:
  /// `capacity` is the most tokens that the sequence may reach, at most the model's context (0 means the
  /// context); `threads` 0 takes one for every core that this process may use. Throws Error(kMachine) when
  /// the memory cannot be reserved.
  Session(const Model& model, int64_t capacity = 0, int32_t threads = 0);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Called with each piece of text as it becomes final, on the calling thread. A piece never ends
  /// within a UTF-8 character that is still being written; bytes that are part of no character are passed on.
  using OnText = std::function<void(std::string_view)>;

  /// Appends a prompt's tokens to the sequence and generates from there. What earlier calls left in the cache
  /// is not evaluated again. The text is streamed to `on_text` and cancelled by GenerateOptions::cancelled.
  /// Throws Error(kBadInput) when the sequence is empty or does not fit, or the recipe is not valid,
  /// Error(kUsage) when an option is out of range or the recipe needs weights that the model was loaded
  /// without, and, before anything is computed, Error(kMachine) when the memory that is available does not
  /// hold the sequence with all the tokens that may be generated. When it throws, the sequence is as it was
  /// before the call.
  ///
  /// The same sequence, options and seed give the same tokens with every lossless recipe, chunk size and
  /// number of threads.
  GenerateResult generate(const std::vector<int32_t>& prompt, const GenerateOptions& options,
                          const Recipe& recipe, const OnText& on_text = {});

  /// Gives the model that recipes with a `model` level draft with. Its vocabulary may be another one.
  void set_draft_model(const Model& model);

  /// Gets what a recipe needs before its first use: for a planned one, what passes cost on this machine, from
  /// the user's cache directory or measured now, which takes seconds for a large model. generate() does so
  /// itself if need be; this call says how far the measuring is, from 0 to 1.
  void prepare(const Recipe& recipe, const std::function<void(double)>& progress = {});

  /// Forgets the tokens from `length` on, so that the next prompt continues from there.
  void truncate(int64_t length);

  /// Every token so far: prompts and what was generated.
  const std::vector<int32_t>& tokens() const;
  /// The number of tokens at the beginning of the sequence whose keys and values are known, so that the next
  /// call need not evaluate them.
  int64_t evaluated() const;

  /// Writes the sequence to a new file: its tokens and, where they are stored in BF16 or F16, its keys and
  /// values; of other caches the tokens alone. The file is for this model on this kind of machine. Throws
  /// Error(kBadInput) when there is a file of that name or none can be made there, and Error(kMachine) when
  /// writing fails.
  void save(const std::filesystem::path& path) const;
  /// Makes the sequence the one that save() wrote. The next call goes on as if nothing had happened, with the
  /// same bytes. Where keys and values are not in the file, or were computed with another instruction set,
  /// the next call evaluates the tokens again. Throws Error(kBadInput), leaving the sequence as it was, when
  /// the file is not a session's, is damaged, belongs to another model, or does not fit the capacity.
  void restore(const std::filesystem::path& path);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verbatim
