#include "drafting/ngram_table.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"

namespace verbatim {

namespace {

/// The sets that an order begins with, and the factor by which it grows.
constexpr size_t kFirstSets = 16;
constexpr size_t kGrowth = 2;

/// Every bit of the result depends on all bits of the state and the token (the finaliser of SplitMix64).
uint64_t mix(uint64_t state, int32_t token) {
  state += 0x9e3779b97f4a7c15 * (static_cast<uint64_t>(static_cast<uint32_t>(token)) + 1);
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

uint32_t tag_of(uint64_t key) {
  return static_cast<uint32_t>(key >> 32);
}

void halve(NgramTable::Followers& followers) {
  size_t kept = 0;
  for (size_t i = 0; i < NgramTable::Followers::kMost; ++i) {
    const auto half = static_cast<uint8_t>(followers.counts[i] / 2);
    if (half == 0) continue;
    followers.tokens[kept] = followers.tokens[i];
    followers.counts[kept++] = half;
  }
  for (; kept < NgramTable::Followers::kMost; ++kept) followers.counts[kept] = 0;
  followers.others /= 2;
}

}  // namespace

NgramTable::NgramTable(const Shape& shape) : shape_(shape) {
  if (shape.shortest < 1 || shape.longest < shape.shortest || shape.longest > kLongest) {
    fail(ErrorKind::kUsage, "n-grams after {} to {} tokens were asked for; 1 to {} exist", shape.shortest,
         shape.longest, kLongest);
  }
  if (shape.contexts < static_cast<int64_t>(kWays) || shape.contexts > kMostContexts ||
      !std::has_single_bit(static_cast<uint64_t>(shape.contexts))) {
    fail(ErrorKind::kUsage, "{} contexts were asked for; their number is a power of two from {} to {}",
         shape.contexts, kWays, kMostContexts);
  }
  if (shape.vocabulary < 0) fail(ErrorKind::kUsage, "the vocabulary has {} tokens", shape.vocabulary);
  static_assert(sizeof(Entry) == 32 && sizeof(Set) == 128);
  static_assert(kMostContexts / int64_t{kWays} <= int64_t{kPlace} + 1);
  most_sets_ = static_cast<size_t>(shape.contexts) / kWays;
  sets_.resize(static_cast<size_t>(orders()));
  for (std::vector<Set>& order : sets_) order.resize(std::min(most_sets_, kFirstSets));
}

uint64_t NgramTable::place_of(const Entry& entry) {
  const std::array<uint8_t, 3>& place = entry.followers.place;
  return place[0] | uint64_t{place[1]} << 8 | uint64_t{place[2]} << 16;
}

/// Gives an order more sets. Entries of a set stay in their order, as if they had always been there.
void NgramTable::grow(size_t index) {
  std::vector<Set> before(std::min(most_sets_, kGrowth * sets_[index].size()));
  before.swap(sets_[index]);
  for (const Set& set : before) {
    for (const Entry& entry : set.entries) {
      if (entry.empty()) continue;
      Set& larger = sets_[index][set_of(index, place_of(entry))];
      *std::find_if(larger.entries.begin(), larger.entries.end(),
                    [](const Entry& each) { return each.empty(); }) = entry;
    }
  }
}

/// An entry without followers for a new context, or null if its set is full and the table cannot grow.
NgramTable::Entry* NgramTable::room_for(size_t index, uint64_t key) {
  while (true) {
    for (Entry& entry : sets_[index][set_of(index, key)].entries) {
      if (!entry.empty()) continue;
      const auto byte = [key](int i) { return static_cast<uint8_t>(key >> (8 * i)); };
      entry = {tag_of(key), tick_, {}};
      entry.followers.place = {byte(0), byte(1), byte(2)};
      return &entry;
    }
    if (sets_[index].size() == most_sets_) return nullptr;
    grow(index);
  }
}

int32_t NgramTable::hash(std::span<const int32_t> context, Keys& keys) const {
  const auto longest = std::min<int64_t>(shape_.longest, static_cast<int64_t>(context.size()));
  uint64_t state = 0;
  int32_t count = 0;
  for (int64_t n = 1; n <= longest; ++n) {
    state = mix(state, context[context.size() - static_cast<size_t>(n)]);
    if (n < shape_.shortest) continue;
    const auto index = static_cast<size_t>(count++);
    keys[index] = state;
    const Set& set = sets_[index][set_of(index, state)];
    __builtin_prefetch(&set);
    __builtin_prefetch(&set.entries[kWays / 2]);
  }
  return count;
}

const NgramTable::Followers* NgramTable::find(int32_t index, uint64_t key) const {
  const auto order = static_cast<size_t>(index);
  for (const Entry& entry : sets_[order][set_of(order, key)].entries) {
    if (entry.tag == tag_of(key) && !entry.empty()) return &entry.followers;
  }
  return nullptr;
}

NgramTable::Entry& NgramTable::place_for(size_t index, uint64_t key) {
  if (Entry* const room = room_for(index, key)) return *room;
  // The value of a context is its count, less one for every `contexts` tokens that were learnt while it went
  // unused, so that a context which was frequent long ago is replaced at last.
  Set& set = sets_[index][set_of(index, key)];
  Entry* worst = &set.entries[0];
  int64_t least = std::numeric_limits<int64_t>::max();
  for (Entry& entry : set.entries) {
    const auto age = static_cast<int64_t>(tick_ - entry.used);
    const int64_t worth = entry.followers.total() * shape_.contexts - age;
    if (worth < least) {
      least = worth;
      worst = &entry;
    }
  }
  *worst = {};
  return *room_for(index, key);
}

void NgramTable::count(Followers& followers, int32_t token) {
  constexpr uint8_t kFull = std::numeric_limits<uint8_t>::max();
  size_t place = 0;
  while (place < Followers::kMost && followers.counts[place] > 0 && followers.tokens[place] != token) ++place;
  if (place == Followers::kMost) {
    // The rarest goes, the one not seen for longest among equals.
    place = Followers::kMost - 1;
    for (size_t i = place; i-- > 0;) {
      if (followers.counts[i] < followers.counts[place]) place = i;
    }
    if (followers.others > kFull - followers.counts[place]) {
      halve(followers);
      return count(followers, token);
    }
    followers.others = static_cast<uint8_t>(followers.others + followers.counts[place]);
    followers.counts[place] = 0;
  }
  if (followers.counts[place] == kFull) {
    halve(followers);
    return count(followers, token);
  }
  const auto seen = static_cast<uint8_t>(followers.counts[place] + 1);
  for (; place > 0; --place) {
    followers.tokens[place] = followers.tokens[place - 1];
    followers.counts[place] = followers.counts[place - 1];
  }
  followers.tokens[0] = token;
  followers.counts[0] = seen;
}

void NgramTable::learn(const Keys& keys, int32_t orders, int32_t token) {
  for (size_t index = 0; index < static_cast<size_t>(orders); ++index) {
    const uint32_t tag = tag_of(keys[index]);
    Entry* found = nullptr;
    for (Entry& entry : sets_[index][set_of(index, keys[index])].entries) {
      if (entry.tag == tag && !entry.empty()) found = &entry;
    }
    if (found == nullptr) found = &place_for(index, keys[index]);
    found->used = tick_;
    count(found->followers, token);
  }
  ++tick_;
}

void NgramTable::learn(std::span<const int32_t> tokens) {
  Keys keys;
  for (size_t i = 0; i < tokens.size(); ++i) {
    learn(keys, hash(tokens.first(i), keys), tokens[i]);
  }
}

int64_t NgramTable::capacity() const {
  int64_t entries = 0;
  for (const std::vector<Set>& order : sets_) entries += static_cast<int64_t>(order.size() * kWays);
  return entries;
}

int64_t NgramTable::size() const {
  int64_t used = 0;
  for (const std::vector<Set>& order : sets_) {
    for (const Set& set : order) {
      used +=
          std::count_if(set.entries.begin(), set.entries.end(), [](const Entry& e) { return !e.empty(); });
    }
  }
  return used;
}

}  // namespace verbatim
