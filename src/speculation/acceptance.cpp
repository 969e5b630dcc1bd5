#include "speculation/acceptance.h"

#include <exception>

#include "base/elementary.h"
#include "sampling/probability.h"
#include "sampling/rejection.h"

namespace verbatim {

namespace {

/// Decides on one drafted token. Returns the token that the sequence goes on with.
int32_t decide(const Recipe& recipe, const Draft& draft, int32_t node, std::span<const float> logits,
               Sampler& sampler, const std::vector<int32_t>& tokens) {
  const auto position = static_cast<int64_t>(tokens.size());
  const int32_t drafted = draft.nodes[static_cast<size_t>(node)].token;
  if (recipe.acceptance == Recipe::Acceptance::kBild) {
    if (-elementary::log(probability(sampler.constrained(logits, tokens), drafted)) <= recipe.rollback)
      return drafted;
    return sampler.sample(logits, position, tokens);
  }
  std::vector<float> model;
  std::vector<float> certain;
  if (!sampler.distribution(logits, tokens, model))
    return sampler.sample(logits, position, tokens);  // throws
  const uint64_t seed = sampler.options().seed;
  const bool known = static_cast<size_t>(node) < draft.distributions.size() &&
                     !draft.distributions[static_cast<size_t>(node)].empty();
  if (!known) {
    certain.assign(model.size(), 0.0f);
    certain[static_cast<size_t>(drafted)] = 1.0f;
  }
  const std::vector<float>& drafts = known ? draft.distributions[static_cast<size_t>(node)] : certain;
  const auto index = static_cast<size_t>(drafted);
  if (keep_draft(model[index], drafts[index], seed, position)) return drafted;
  return sample_residual(model, drafts, seed, position);
}

/// Makes the last kept token, after which no token could be chosen, the last one of the step. It is then as
/// if the draft had ended before it and it was the model's own.
void end_before_failure(const Draft& draft, Verdict& verdict) {
  verdict.last = draft.nodes[static_cast<size_t>(verdict.last)].parent;
  verdict.rejected = false;
  --verdict.kept;
}

}  // namespace

Verdict accept(const Recipe& recipe, const Draft& draft, Matrix<const float> logits,
               const Evaluator& evaluator, Sampler& sampler, std::vector<int32_t>& tokens,
               const ScoreSink& scores) {
  Verdict verdict;
  while (true) {
    const auto row = logits.row_span(evaluator.row_of(verdict.last));
    // The rules `rejection` and `bild`, which do not handle trees, follow first children only.
    const int32_t offered = draft.first_child(verdict.last);
    const bool exact = recipe.acceptance == Recipe::Acceptance::kExact || offered == DraftNode::kRoot;
    int32_t token = 0;
    try {
      token = exact ? sampler.sample(row, static_cast<int64_t>(tokens.size()), tokens)
                    : decide(recipe, draft, offered, row, sampler, tokens);
    } catch (const std::exception&) {
      if (verdict.last == DraftNode::kRoot) throw;
      end_before_failure(draft, verdict);
      return verdict;
    }
    scores.add(row, token);
    tokens.push_back(token);
    if (exact) {
      const int32_t next = draft.child(verdict.last, token);
      verdict.rejected = offered != DraftNode::kRoot && next == DraftNode::kRoot;
      if (next == DraftNode::kRoot) return verdict;
      verdict.last = next;
    } else {
      // A rejected token never comes back as the residual of itself; under bild the model may repeat it.
      verdict.rejected = token != draft.nodes[static_cast<size_t>(offered)].token;
      if (verdict.rejected) return verdict;
      verdict.last = offered;
    }
    ++verdict.kept;
  }
}

}  // namespace verbatim
