#include "drafting/ngram_drafter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/stopwatch.h"

namespace verbatim {

namespace {

using Followers = NgramTable::Followers;

/// The weight added to the most recent follower, and the number of unseen followers that is assumed.
constexpr float kRecentBonus = 1.0f;
constexpr float kUnseen = 0.5f;

/// The share of the i-th follower among all that followed.
float share(const Followers& followers, size_t i) {
  const float seen = static_cast<float>(followers.counts[i]) + (i == 0 ? kRecentBonus : 0.0f);
  return seen / (static_cast<float>(followers.total()) + kRecentBonus + kUnseen);
}

size_t best_of(const Followers& followers) {
  size_t best = 0;
  for (size_t i = 1; i < Followers::kMost; ++i) {
    if (share(followers, i) > share(followers, best)) best = i;
  }
  return best;
}

size_t bucket_of(float share, size_t buckets) {
  return std::min(static_cast<size_t>(share * static_cast<float>(buckets)), buckets - 1);
}

std::shared_ptr<const NgramTable> load_table(const std::string& path, int32_t vocabulary) {
  auto table = std::make_shared<const NgramTable>(NgramTable::load(path));
  if (table->shape().vocabulary != vocabulary) {
    bad_input("{} was counted with a vocabulary of {} tokens, but the model has {}: count its text anew",
              path, table->shape().vocabulary, vocabulary);
  }
  return table;
}

}  // namespace

NgramDrafter::NgramDrafter(const DraftLevel& level, int32_t vocabulary) {
  NgramTable::Shape shape;
  shape.shortest = level.shortest_match;
  shape.longest = level.longest_match;
  shape.vocabulary = vocabulary;
  own_ = std::make_shared<NgramTable>(shape);
  sources_.push_back(source_of(own_));
  if (!level.table.empty()) sources_.push_back(source_of(load_table(level.table, vocabulary)));
  longest_ = 0;
  for (const Source& source : sources_) longest_ = std::max(longest_, source.table->shape().longest);
}

NgramDrafter::Source NgramDrafter::source_of(std::shared_ptr<const NgramTable> table) {
  std::array<HitRate, kBuckets> rates;
  for (size_t i = 0; i < kBuckets; ++i) {
    // Until there is something to measure: orders disagree most where guesses are poor, and the most
    // confident of them then promises too much.
    const float middle = (static_cast<float>(i) + 0.5f) / kBuckets;
    rates[i] = {middle * std::sqrt(middle), 4.0f};
  }
  const auto orders = static_cast<size_t>(table->orders());
  return {std::move(table), std::vector(orders, rates)};
}

size_t NgramDrafter::guess(std::span<const int32_t> context, std::span<Guessed> out) const {
  size_t count = 0;
  const auto offer = [&](int32_t token, float confidence) {
    size_t place = 0;
    while (place < count && out[place].token != token) ++place;
    if (place == count) {
      if (count < out.size()) {
        ++count;
      } else if (out.empty() || out[--place].confidence >= confidence) {
        return;
      }
    } else if (out[place].confidence >= confidence) {
      return;
    }
    for (; place > 0 && out[place - 1].confidence < confidence; --place) out[place] = out[place - 1];
    out[place] = {token, confidence};
  };
  for (const Source& source : sources_) {
    NgramTable::Keys keys;
    const int32_t orders = source.table->hash(context, keys);
    for (int32_t index = orders; index-- > 0;) {
      const Followers* const followers = source.table->find(index, keys[static_cast<size_t>(index)]);
      if (followers == nullptr) continue;
      const size_t best = best_of(*followers);
      const float best_share = share(*followers, best);
      const float rate = source.hit_rates[static_cast<size_t>(index)][bucket_of(best_share, kBuckets)].rate;
      offer(followers->tokens[best], rate);
      for (size_t i = 0; i < Followers::kMost && followers->counts[i] > 0; ++i) {
        if (i == best) continue;
        const float confidence =
            share(*followers, i) * std::min(rate / best_share, (1.0f - rate) / (1.0f - best_share));
        offer(followers->tokens[i], confidence);
      }
    }
  }
  // Where tables and orders disagree, the confidences can add up to more than 1.
  float left = 1.0f;
  for (Guessed& guessed : out.first(count)) {
    guessed.confidence = std::min(guessed.confidence, left);
    left -= guessed.confidence;
  }
  return count;
}

void NgramDrafter::propose(Sequence& sequence, Sampler& sampler, const DraftLimits& limits, int64_t room,
                           Draft& draft) {
  const Stopwatch watch(stats.seconds);
  propose(sequence.tokens, limits, room, draft, &sampler);
  stats.drafted += draft.size();
}

void NgramDrafter::propose(std::span<const int32_t> tokens, const DraftLimits& limits, int64_t room,
                           Draft& draft, const Sampler* sampler) {
  const auto longest = static_cast<size_t>(longest_);
  const auto end = tokens.last(std::min(tokens.size(), longest));
  tail_.assign(end.begin(), end.end());
  picks_.clear();

  std::array<Guessed, 8> guesses;
  const auto breadth = static_cast<size_t>(std::clamp<int32_t>(limits.breadth, 1, guesses.size()));
  const int64_t deepest = std::min<int64_t>(limits.length, std::min<int64_t>(room, limits.nodes));
  float reached = 1.0f;
  for (int32_t depth = 0; depth < deepest; ++depth) {
    const auto context = std::span<const int32_t>(tail_).last(std::min(tail_.size(), longest));
    const size_t count = guess(context, std::span(guesses).first(breadth));
    for (size_t i = 0; i < count; ++i) {
      const float each = reached * guesses[i].confidence;
      if (each < (i == 0 ? limits.path_threshold : limits.leaf_threshold)) break;
      if (i == 0 && limits.drop_unsure && guesses[0].confidence < limits.threshold) break;
      picks_.push_back({guesses[i].token, depth, static_cast<int32_t>(i), guesses[i].confidence, each});
    }
    if (count == 0 || reached * guesses[0].confidence < limits.path_threshold) {
      draft.unsure = true;
      break;
    }
    reached *= guesses[0].confidence;
    if (guesses[0].confidence < limits.threshold) {
      draft.unsure = true;
      break;
    }
    if (sampler != nullptr && sampler->ends(guesses[0].token)) break;
    tail_.push_back(guesses[0].token);
  }

  // The likeliest nodes are taken. The ancestors of a node are at least as likely and, among equals, come
  // earlier, so they are taken, too.
  const auto nodes = static_cast<size_t>(std::max(limits.nodes, 0));
  if (picks_.size() > nodes) {
    std::sort(picks_.begin(), picks_.end(), [](const Pick& a, const Pick& b) {
      if (a.reached != b.reached) return a.reached > b.reached;
      return a.depth != b.depth ? a.depth < b.depth : a.rank < b.rank;
    });
    picks_.resize(nodes);
  }
  std::sort(picks_.begin(), picks_.end(), [](const Pick& a, const Pick& b) {
    return a.depth != b.depth ? a.depth < b.depth : a.rank < b.rank;
  });
  int32_t chain = DraftNode::kRoot;
  int32_t parent = DraftNode::kRoot;
  for (const Pick& pick : picks_) {
    if (pick.rank == 0) parent = chain;
    const int32_t node = draft.add(pick.token, parent, pick.confidence, pick.rank, level);
    if (pick.rank == 0) chain = node;
  }
}

void NgramDrafter::observe(const Sequence& sequence) {
  observe(sequence.tokens);
}

size_t NgramDrafter::common_length(std::span<const int32_t> tokens) const {
  // A sequence grows at its end: where the last tokens seen before are unchanged, all tokens before them are
  // assumed to be unchanged, too.
  constexpr size_t kChecked = 32;
  const size_t known = std::min({seen_, tokens.size(), learnt_.size()});
  const size_t from = known - std::min(known, kChecked);
  const bool same = std::equal(tokens.begin() + static_cast<ptrdiff_t>(from),
                               tokens.begin() + static_cast<ptrdiff_t>(known),
                               learnt_.begin() + static_cast<ptrdiff_t>(from));
  size_t common = same ? known : 0;
  while (common < std::min(tokens.size(), learnt_.size()) && tokens[common] == learnt_[common]) ++common;
  return common;
}

void NgramDrafter::observe(std::span<const int32_t> tokens) {
  const size_t common = common_length(tokens);
  seen_ = tokens.size();
  if (common == tokens.size())
    return;  // perhaps shortened; if it grows again as it was, that is known already
  learnt_.resize(common);
  for (size_t i = common; i < tokens.size(); ++i) {
    learn(tokens.first(i), tokens[i]);
    learnt_.push_back(tokens[i]);
  }
}

void NgramDrafter::learn(std::span<const int32_t> context, int32_t token) {
  constexpr float kMemory = 100.0f;
  NgramTable::Keys keys;
  int32_t orders = 0;
  for (size_t i = sources_.size(); i-- > 0;) {  // the own one last, to learn with its keys
    Source& source = sources_[i];
    orders = source.table->hash(context, keys);
    for (int32_t index = 0; index < orders; ++index) {
      const Followers* const followers = source.table->find(index, keys[static_cast<size_t>(index)]);
      if (followers == nullptr) continue;
      const size_t best = best_of(*followers);
      HitRate& hits =
          source.hit_rates[static_cast<size_t>(index)][bucket_of(share(*followers, best), kBuckets)];
      hits.weight = std::min(hits.weight + 1.0f, kMemory);
      hits.rate += ((followers->tokens[best] == token ? 1.0f : 0.0f) - hits.rate) / hits.weight;
    }
  }
  own_->learn(keys, orders, token);
}

}  // namespace verbatim
