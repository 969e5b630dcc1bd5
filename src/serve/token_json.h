#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "serve/json.h"
#include "serve/models.h"

namespace verbatim::serve {

/// The bytes that a generated token adds to the text of an answer.
std::string bytes_of_token(const Model& model, int32_t token, std::span<const int32_t> shown_tokens = {});

/// A token for people: its bytes, those that are no UTF-8 replaced, or its spelling if it is a control token.
std::string spelled(const Model& model, int32_t token);

/// Whether a token only ends an answer (an end of sequence or a stop token), and so has no place in the
/// answer's log-probabilities.
bool only_ends(const Model& model, const GenerateOptions& options, int32_t token);

/// The entry of a token in the list `logprobs.content` of a chat's choice.
Json chat_logprob(const Model& model, const ScoredToken& scored);

/// The lists of a completion's `logprobs` as its tokens come. Offsets count characters of the text.
class CompletionLogprobs {
 public:
  explicit CompletionLogprobs(const Model& model) : model_(model) {}

  /// Adds a token; one that is first of all and was not scored has no number.
  void add(const ScoredToken& scored, bool known = true);
  /// What was added since the last call.
  Json take();

 private:
  const Model& model_;
  int64_t offset_ = 0;
  Json tokens_ = Json::array();
  Json logprobs_ = Json::array();
  Json top_ = Json::array();
  Json offsets_ = Json::array();
};

/// The list `verbatim.tokens` of a chunk: where each token came from. `levels` are the names of the recipe's
/// levels, as names_of_levels() gives them.
Json origins_json(const Model& model, const TokenStream::Piece& piece, std::span<const int32_t> shown_tokens,
                  std::span<const std::string> levels);

/// The names of the levels of a recipe as a model's engine runs it.
std::vector<std::string> names_of_levels(const LoadedModel& model, const Recipe& recipe);

}  // namespace verbatim::serve
