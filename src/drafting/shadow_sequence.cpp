#include "drafting/shadow_sequence.h"

#include <algorithm>

#include "base/utf8.h"
#include "kv/dense.h"
#include "text/same_vocabulary.h"

namespace verbatim {

namespace {

// These lengths count tokens of the followed sequence.
constexpr size_t kShortestBlock = 16;
constexpr size_t kLongestBlock = 64;  // beyond it a block ends anywhere: some scripts have no spaces
constexpr size_t kOpen = 16;          // so many at the end are in no block

void drop_invalid_utf8(std::string& text) {
  for (size_t at; (at = find_invalid_utf8(text)) != std::string::npos;) text.erase(at, 1);
}

}  // namespace

ShadowSequence::ShadowSequence(std::shared_ptr<const Tokenizer> from, std::shared_ptr<const Tokenizer> to,
                               int64_t most)
    : from_(std::move(from)),
      to_(std::move(to)),
      encoder_(*to_),
      most_(static_cast<size_t>(most)),
      shadow_{{}, std::make_unique<DenseCache>(CacheShape{}, 0)} {}

double ShadowSequence::ratio() const {
  const size_t followed = followed_.size() - origin_;
  if (followed == 0) return 1.0;
  return static_cast<double>(shadow_.tokens.size()) / static_cast<double>(followed);
}

void ShadowSequence::follow(std::span<const Token> tokens) {
  const auto [differs, from] =
      std::mismatch(followed_.begin(), followed_.end(), tokens.begin(), tokens.end());
  followed_.erase(differs, followed_.end());
  const size_t same = followed_.size();
  followed_.insert(followed_.end(), from, tokens.end());
  // Blocks are made anew, as if the sequence had been followed from its beginning: where a block ends depends
  // on the tokens after it.
  while (!blocks_.empty() && blocks_.back().end + kOpen > same) blocks_.pop_back();
  if (same <= origin_) origin_ = 0;
  encode_all();
  if (shadow_.tokens.size() <= most_) return;
  const size_t surplus = shadow_.tokens.size() - most_ / 2;
  const auto block = std::find_if(blocks_.begin(), blocks_.end(),
                                  [&](const Block& b) { return b.shadow_tokens >= surplus; });
  if (block != blocks_.end()) {
    origin_ = block->end;
    blocks_.clear();
    encode_all();
  }
  if (shadow_.tokens.size() <= most_) return;
  blocks_.clear();
  shadow_.tokens.clear();
}

/// Encodes the followed tokens that are in no block.
void ShadowSequence::encode_all() {
  size_t begin = origin_;
  if (blocks_.empty()) {
    shadow_.tokens = to_->encode("", {.add_bos = true, .parse_special = false});
    has_text_ = false;
    begun_ = origin_ > 0;
  } else {
    begin = blocks_.back().end;
    shadow_.tokens.resize(blocks_.back().shadow_tokens);
    has_text_ = blocks_.back().has_text;
    begun_ = blocks_.back().begun;
  }
  for (size_t cut; (cut = find_cut(begin)) > begin; begin = cut) {
    encode(begin, cut);
    blocks_.push_back({cut, shadow_.tokens.size(), has_text_, begun_});
  }
  encode(begin, followed_.size());
}

/// The end of the block that starts at `begin`, or `begin` if there is no place yet where it may end.
size_t ShadowSequence::find_cut(size_t begin) const {
  const std::span<const Token> tokens = followed_;
  for (size_t cut = begin + kShortestBlock; cut + kOpen <= tokens.size(); ++cut) {
    if (begins_word(*from_, tokens, cut)) return cut;
    if (cut - begin < kLongestBlock) continue;
    const bool whole = incomplete_utf8_suffix(inner_bytes(*from_, tokens.subspan(cut - 4, 4))) == 0;
    if (whole || cut - begin >= 2 * kLongestBlock) return cut;
  }
  return begin;
}

/// Appends the translation of the followed tokens `begin` .. `end` - 1 to the shadow.
void ShadowSequence::encode(size_t begin, size_t end) {
  pending_.clear();
  std::string text;
  for (size_t i = begin; i < end; ++i) {
    const Token token = followed_[i];
    if (!from_->is_control(token)) {
      text += from_->piece_bytes(token, !begun_);
      begun_ = true;
      continue;
    }
    encode_text(std::move(text), false);
    text.clear();
    // The followed vocabulary's begin-of-text token is not translated: the shadow begins with its own
    // vocabulary's, if that has one.
    if (i == 0 && token == from_->bos()) continue;
    if (const auto same = same_control(*from_, token, *to_)) shadow_.tokens.push_back(*same);
  }
  encode_text(std::move(text), end == followed_.size());
}

void ShadowSequence::encode_text(std::string text, bool may_be_cut) {
  if (may_be_cut) {
    pending_ = text.substr(text.size() - incomplete_utf8_suffix(text));
    text.resize(text.size() - pending_.size());
  }
  drop_invalid_utf8(text);
  if (text.empty()) return;
  if (has_text_ || origin_ > 0) {
    encoder_.encode(text, shadow_.tokens);
  } else {
    const std::vector<Token> tokens = to_->encode(text, {.add_bos = false, .parse_special = false});
    shadow_.tokens.insert(shadow_.tokens.end(), tokens.begin(), tokens.end());
  }
  has_text_ = true;
}

}  // namespace verbatim
