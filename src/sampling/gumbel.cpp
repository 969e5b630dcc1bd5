#include "sampling/gumbel.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/elementary.h"
#include "sampling/logits.h"

namespace verbatim {

namespace {

// No noise exceeds -log(-log(1 - 2^-33)) = 22.8739.
constexpr double kLargestNoise = 22.88;

constexpr size_t kBlock = 64;
using BlockWords = std::array<uint32_t, kBlock>;

double noise_from(uint32_t word) {
  const double u = (static_cast<double>(word) + 0.5) * 0x1p-32;  // never 0 and never 1
  return -elementary::log(-elementary::log(u));
}

/// The random words of the tokens first .. first + kBlock - 1.
void fill_words(NoisePlace place, size_t first, BlockWords& words) {
  for (size_t i = 0; i < kBlock; i += 4) {
    const auto four = noise_words(NoiseDomain::kGumbel, place, static_cast<uint32_t>((first + i) / 4));
    std::copy(four.begin(), four.end(), words.begin() + static_cast<ptrdiff_t>(i));
  }
}

/// The best tokens so far, and what another one needs to join them. Both bounds err on the side of looking
/// again.
template <size_t kCount>
struct Leaders {
  double temperature;
  BestList<kCount> list = {};

  double score() const { return list.last().score; }

  /// Rounding of scores, and of what is computed from them here, stays well below this.
  double slack(double scaled) const { return 1e-3 + 1e-14 * (std::abs(score()) + std::abs(scaled)); }

  /// A logit below this loses even with the largest noise.
  float lowest_logit() const {
    const double lowest = (score() - kLargestNoise - slack(0.0)) * temperature;
    return static_cast<float>(lowest - 1e-6 * std::abs(lowest));
  }

  /// A random word below this loses with any logit up to `largest`: noise above n has probability
  /// 1 - exp(-exp(-n)), which is less than exp(-n).
  uint32_t lowest_word(float largest) const {
    const double scaled = static_cast<double>(largest) / temperature;
    const double needed = score() - scaled - slack(scaled);
    if (!(needed > 0.0)) return 0;
    return static_cast<uint32_t>((1.0 - softmax_weight(static_cast<float>(-needed))) * 0x1p32 *
                                 (1.0 - 0x1p-32));
  }

  /// Offers the tokens of the block that begins with the token `first`; `largest` is its largest logit.
  void look_at(std::span<const float> block, size_t first, float largest, NoisePlace place, const Cut& cut) {
    BlockWords words;
    fill_words(place, first, words);
    const uint32_t lowest = lowest_word(largest);
    for (size_t i = 0; i < block.size(); ++i) {
      const auto token = static_cast<int32_t>(first + i);
      if (words[i] < lowest || !cut.keeps(block[i], token)) continue;
      list.offer(static_cast<double>(block[i]) / temperature + noise_from(words[i]), token);
    }
  }
};

}  // namespace

double gumbel(NoisePlace place, int32_t token) {
  const auto index = static_cast<uint32_t>(token);
  return noise_from(noise_words(NoiseDomain::kGumbel, place, index / 4)[index % 4]);
}

int32_t gumbel_argmax(std::span<const float> logits, float temperature, NoisePlace place, const Cut& cut,
                      int32_t likeliest) {
  Leaders<1> leaders{temperature};
  leaders.list.offer(
      static_cast<double>(logits[static_cast<size_t>(likeliest)]) / temperature + gumbel(place, likeliest),
      likeliest);
  float threshold = std::max(cut.logit, leaders.lowest_logit());
  for (size_t first = 0; first < logits.size(); first += kBlock) {
    const auto block = logits.subspan(first, std::min(kBlock, logits.size() - first));
    const float largest = largest_logit(block);
    if (largest < threshold) continue;
    leaders.look_at(block, first, largest, place, cut);
    threshold = std::max(cut.logit, leaders.lowest_logit());
  }
  return leaders.list[0].token;
}

BestList<kGumbelBest> gumbel_best(std::span<const float> logits, float temperature, NoisePlace place,
                                  const Cut& cut, std::vector<LogitBlock>& memory) {
  memory.clear();
  for (size_t first = 0; first < logits.size(); first += kBlock) {
    const auto block = logits.subspan(first, std::min(kBlock, logits.size() - first));
    memory.push_back({largest_logit(block), static_cast<uint32_t>(first)});
  }
  // The blocks that promise most come first: what they hold rules out nearly all others at a glance.
  if (memory.size() > kGumbelBest) {
    std::nth_element(memory.begin(), memory.begin() + kGumbelBest, memory.end(),
                     [](const LogitBlock& a, const LogitBlock& b) { return a.largest > b.largest; });
  }
  Leaders<kGumbelBest> leaders{temperature};
  float threshold = cut.logit;
  for (const LogitBlock& each : memory) {
    if (each.largest < threshold) continue;
    const auto block = logits.subspan(each.first, std::min(kBlock, logits.size() - each.first));
    leaders.look_at(block, each.first, each.largest, place, cut);
    threshold = std::max(cut.logit, leaders.lowest_logit());
  }
  return leaders.list;
}

}  // namespace verbatim
