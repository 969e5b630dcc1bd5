#include "drafting/translating_drafter.h"

#include <algorithm>
#include <cmath>

#include "base/stopwatch.h"
#include "base/utf8.h"
#include "text/same_vocabulary.h"

namespace verbatim {

namespace {

/// The most tokens at the end of the sequence that are encoded again together with a draft.
constexpr size_t kLongestContext = 24;
/// The most tokens of an inner draft.
constexpr int64_t kLongestInnerDraft = 128;

/// The number of positions that are kept free behind a shadow, for drafts.
int64_t draft_room(int64_t capacity) {
  return std::min<int64_t>(kLongestInnerDraft / 2, capacity / 4);
}

}  // namespace

TranslatingDrafter::TranslatingDrafter(std::unique_ptr<Drafter> inner,
                                       std::shared_ptr<const Tokenizer> theirs,
                                       std::shared_ptr<const Tokenizer> ours, int64_t capacity)
    : inner_(std::move(inner)),
      theirs_(std::move(theirs)),
      ours_(std::move(ours)),
      encoder_(*ours_),
      capacity_(capacity),
      shadow_(ours_, theirs_, capacity - draft_room(capacity)) {}

void TranslatingDrafter::propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits,
                                 int64_t room, Draft& draft) {
  const Stopwatch watch(stats.seconds);
  const int64_t most = std::min<int64_t>({limits.length, limits.nodes, room});
  if (most < 1) return;
  shadow_.follow(sequence.tokens);
  if (shadow_.sequence().tokens.empty()) return;
  draft_text(limits, most, sampler);
  draft.unsure = inner_draft_.unsure;
  if (!read_inner_draft() || !encode_after(sequence.tokens)) return;
  add_found(limits, most, draft);
  stats.drafted += draft.size();
}

/// Makes inner_draft_, long enough for `most` tokens and the one that is left out.
void TranslatingDrafter::draft_text(const DraftLimits& limits, int64_t most, Sampler& sampler) {
  const float penalty = sampler.options().repetition_penalty;
  if (penalty != greedy_.options().repetition_penalty) {
    greedy_ = Sampler(SamplingOptions{.repetition_penalty = penalty});
  }
  const auto length = static_cast<int64_t>(std::ceil(static_cast<double>(most) * shadow_.ratio())) + 1;
  DraftLimits inner = limits;
  inner.breadth = 1;
  inner.length = static_cast<int32_t>(std::min(length, kLongestInnerDraft));
  inner.nodes = inner.length;
  const auto held = static_cast<int64_t>(shadow_.sequence().tokens.size());
  const int64_t passes = inner_->stats.passes;
  inner_draft_.clear();
  inner_->propose(shadow_.sequence(), greedy_, inner, capacity_ - held, inner_draft_);
  stats.passes += inner_->stats.passes - passes;
}

/// Turns the inner draft into text. Returns false if that text does not continue the sequence.
bool TranslatingDrafter::read_inner_draft() {
  text_.clear();
  marks_.clear();
  last_.reset();
  ended_ = false;
  for (const DraftNode& node : inner_draft_.nodes) {
    if (theirs_->is_control(node.token)) {
      last_ = same_control(*theirs_, node.token, *ours_);
      last_confidence_ = node.confidence;
      ended_ = true;
      break;
    }
    const std::string bytes = theirs_->piece_bytes(node.token, !shadow_.has_text() && marks_.empty());
    // What only fills the vocabulary up is nothing to go on from.
    if (bytes.empty()) break;
    marks_.push_back({text_.size(), node.confidence});
    text_ += bytes;
  }
  return text_.starts_with(shadow_.pending()) && (!text_.empty() || last_);
}

/// The first of the tokens that are encoded again together with the drafted text: the beginning of the last
/// word, if that can be found.
size_t TranslatingDrafter::context_of(const std::vector<Token>& tokens) const {
  size_t i = tokens.size();
  const size_t first = i - std::min(i, kLongestContext);
  while (i > first && !ours_->is_control(tokens[i - 1])) {
    --i;
    if (i > 0 && begins_word(*ours_, tokens, i)) break;
  }
  return i;
}

/// Fills found_ with the tokens of text_ in our vocabulary, as they follow `tokens`. Returns false if they
/// cannot be determined.
bool TranslatingDrafter::encode_after(const std::vector<Token>& tokens) {
  const size_t from = context_of(tokens);
  // Only control tokens before: a beginning.
  const bool begins = std::all_of(tokens.begin(), tokens.begin() + static_cast<int64_t>(from),
                                  [&](Token token) { return ours_->is_control(token); });
  std::string whole;
  for (size_t i = from; i < tokens.size(); ++i) {
    whole += ours_->piece_bytes(tokens[i], begins && i == from);
  }
  const size_t known = whole.size();
  const size_t pending = shadow_.pending().size();
  whole += text_.substr(pending);
  const size_t valid = std::min(find_invalid_utf8(whole), whole.size());
  if (valid < whole.size()) ended_ = false;
  found_.clear();
  if (valid > known && !encode_from(std::string_view(whole).substr(0, valid), begins, known)) return false;
  for (Found& found : found_) found.end += pending;
  // Cut off by its length alone, a draft may end within what would have been one token.
  if (!ended_ && !inner_draft_.unsure && !found_.empty()) found_.pop_back();
  return !found_.empty() || ended_;
}

/// Encodes a text and fills found_ with the tokens after its first `known` bytes. Returns false if a token
/// lies across that place, or if the text cannot be encoded exactly.
bool TranslatingDrafter::encode_from(std::string_view text, bool begins, size_t known) {
  encoded_.clear();
  if (begins) {
    encoded_ = ours_->encode(text, {.add_bos = false, .parse_special = false});
    if (ours_->decode(encoded_) != text) return false;
  } else if (!encoder_.encode(text, encoded_)) {
    return false;
  }
  found_.clear();
  size_t end = 0;
  bool whole = known == 0;
  for (size_t i = 0; i < encoded_.size(); ++i) {
    end += ours_->piece_bytes(encoded_[i], begins && i == 0).size();
    if (end > known) found_.push_back({encoded_[i], end - known});
    whole = whole || end == known;
  }
  return whole;
}

/// Adds the tokens in found_ to the draft. The confidence of a token is made of those of the inner draft's
/// tokens that begin in it.
void TranslatingDrafter::add_found(const DraftLimits& limits, int64_t most, Draft& draft) const {
  int32_t parent = DraftNode::kRoot;
  const auto add = [&](Token token, float confidence) {
    if (draft.size() >= most) return false;
    const bool unsure = confidence < limits.threshold;
    draft.unsure = draft.unsure || unsure;
    if (unsure && limits.drop_unsure) return false;
    parent = draft.add(token, parent, confidence, 0, level);
    const bool unlikely = draft.nodes.back().path < limits.path_threshold;
    draft.unsure = draft.unsure || unlikely;
    return !unsure && !unlikely;
  };
  auto mark = marks_.begin();
  for (const Found& found : found_) {
    float confidence = 1.0f;
    for (; mark != marks_.end() && mark->begin < found.end; ++mark) confidence *= mark->confidence;
    if (!add(found.token, confidence)) return;
  }
  if (ended_ && last_) add(*last_, last_confidence_);
}

}  // namespace verbatim
