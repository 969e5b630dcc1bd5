#include "text/bpe_merge.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace verbatim {

namespace {

// Below this length, looking at every pair each time is faster than keeping a heap.
constexpr size_t kShortWord = 16;
constexpr Token kMergedAway = -1;
constexpr uint32_t kNone = UINT32_MAX;

}  // namespace

// The left token is stored plus one, so that no pair has the key 0.
uint64_t MergeTable::key_of(Token left, Token right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) + 1) << 32 | static_cast<uint32_t>(right);
}

size_t MergeTable::home(uint64_t key) const {
  const uint64_t mixed = (key ^ key >> 32) * 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(mixed >> 20) & (slots_.size() - 1);
}

void MergeTable::reserve(size_t count) {
  const size_t wanted = std::bit_ceil(std::max<size_t>(count * 2, 16));
  if (wanted <= slots_.size()) return;
  std::vector<Slot> old(wanted);
  old.swap(slots_);
  count_ = 0;
  for (const Slot& slot : old) {
    if (slot.key != 0)
      add(static_cast<Token>((slot.key >> 32) - 1), static_cast<Token>(slot.key), slot.merge);
  }
}

void MergeTable::add(Token left, Token right, Merge merge) {
  if ((count_ + 1) * 2 > slots_.size()) reserve(std::max<size_t>(count_ * 2, 8));
  const uint64_t key = key_of(left, right);
  size_t i = home(key);
  while (slots_[i].key != 0 && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
  if (slots_[i].key == 0) ++count_;
  slots_[i] = {key, merge};
}

const Merge* MergeTable::find(Token left, Token right) const {
  if (slots_.empty()) return nullptr;
  const uint64_t key = key_of(left, right);
  for (size_t i = home(key); slots_[i].key != 0; i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i].key == key) return &slots_[i].merge;
  }
  return nullptr;
}

void PairMerger::merge(std::vector<Token>& tokens, size_t begin) {
  const size_t count = tokens.size() - begin;
  if (count < 2) return;
  if (count > most_)
    bad_input("a word of the text has {} tokens before any merge; at most {} fit", count, most_);
  if (count <= kShortWord) {
    merge_short(tokens, begin);
  } else {
    merge_long(tokens, begin);
  }
}

void PairMerger::merge_short(std::vector<Token>& tokens, size_t begin) {
  Merge merges[kShortWord +
               1];  // merges[i]: what tokens i and i + 1 become; the rank is kNever where they do not merge
  constexpr int32_t kNever = INT32_MAX;
  size_t count = tokens.size() - begin;
  Token* word = tokens.data() + begin;
  const auto look_up = [&](size_t i) {
    const Merge* merge = table_->find(word[i], word[i + 1]);
    merges[i] = merge != nullptr ? *merge : Merge{kNever, -1};
  };
  for (size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].result < 0) break;
    word[best] = merges[best].result;
    --count;
    for (size_t i = best + 1; i < count; ++i) {  // the pair (i, i + 1) was (i + 1, i + 2)
      word[i] = word[i + 1];
      merges[i] = merges[i + 1];
    }
    if (best > 0) look_up(best - 1);
    if (best + 1 < count) look_up(best);
  }
  tokens.resize(begin + count);
}

void PairMerger::merge_long(std::vector<Token>& tokens, size_t begin) {
  const auto count = static_cast<uint32_t>(tokens.size() - begin);
  Token* word = tokens.data() + begin;
  next_.resize(count);
  previous_.resize(count);
  heap_.clear();
  const auto candidate = [&](uint32_t left, uint32_t right) {
    const Merge* merge = table_->find(word[left], word[right]);
    if (merge == nullptr) return false;
    heap_.push_back({merge->rank, left, word[left], word[right]});
    return true;
  };
  for (uint32_t i = 0; i < count; ++i) {
    next_[i] = i + 1 < count ? i + 1 : kNone;
    previous_[i] = i > 0 ? i - 1 : kNone;
    if (i + 1 < count) candidate(i, i + 1);
  }
  std::make_heap(heap_.begin(), heap_.end(), later);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Candidate top = heap_.back();
    heap_.pop_back();
    const uint32_t left = top.position;
    const uint32_t right = next_[left];
    // Either side may have been merged since.
    if (word[left] != top.left || right == kNone || word[right] != top.right) continue;
    word[left] = table_->find(top.left, top.right)->result;
    word[right] = kMergedAway;
    next_[left] = next_[right];
    if (next_[left] != kNone) {
      previous_[next_[left]] = left;
      if (candidate(left, next_[left])) std::push_heap(heap_.begin(), heap_.end(), later);
    }
    if (previous_[left] != kNone && candidate(previous_[left], left)) {
      std::push_heap(heap_.begin(), heap_.end(), later);
    }
  }
  const auto kept =
      std::remove(tokens.begin() + static_cast<std::ptrdiff_t>(begin), tokens.end(), kMergedAway);
  tokens.erase(kept, tokens.end());
}

}  // namespace verbatim
