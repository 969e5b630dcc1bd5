#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/elementary.h"
#include "model/forward_pass.h"

namespace verbatim {

namespace {

/// Chooses the experts with the largest scores, of equal ones the first, as many as `chosen` has room for. A
/// score that is not a number is below all others. Writes the experts in ascending order, and their weights:
/// the softmax over all scores, or with `normalized` over the chosen ones. `order` has room for all experts.
void choose(std::span<const float> scores, const Experts& experts, std::span<int32_t> order,
            std::span<int32_t> chosen, std::span<float> weights) {
  const auto score = [&scores](int32_t expert) { return scores[static_cast<size_t>(expert)]; };
  const auto before = [&](int32_t a, int32_t b) {
    if (std::isnan(score(a)) || std::isnan(score(b))) {
      return std::isnan(score(a)) == std::isnan(score(b)) ? a < b : std::isnan(score(b));
    }
    return score(a) != score(b) ? score(a) > score(b) : a < b;
  };
  std::iota(order.begin(), order.end(), 0);
  std::nth_element(order.begin(), order.begin() + std::ssize(chosen) - 1, order.end(), before);
  std::copy_n(order.begin(), chosen.size(), chosen.begin());
  std::sort(chosen.begin(), chosen.end());

  const float largest = score(*std::min_element(chosen.begin(), chosen.end(), before));
  const auto share = [&](int32_t expert) {
    return elementary::exp(static_cast<double>(score(expert)) - static_cast<double>(largest));
  };
  double sum = 0.0;
  if (experts.normalized) {
    for (const int32_t expert : chosen) sum += share(expert);
  } else {
    for (int32_t expert = 0; expert < experts.count; ++expert) sum += share(expert);
  }
  for (size_t i = 0; i < chosen.size(); ++i) weights[i] = static_cast<float>(share(chosen[i]) / sum);
}

}  // namespace

void Decoder::ForwardPass::route(int64_t layer_index, Matrix<const float> x) {
  const LinearWeight& router = decoder.routers_[static_cast<size_t>(layer_index)];
  ExpertWorkspace& to = work.experts;
  const Experts& experts = config.experts;
  const Matrix<float> scores(to.scores.data(), x.rows, router.padded_columns());
  linear(router, Reading::kF32, x, scores, work.linear, team);
  add_bias(scores, decoder.weights_.layers[static_cast<size_t>(layer_index)].router_bias);
  each_of(x.rows, [&](int64_t r) {
    const auto at = static_cast<size_t>(r) * used_experts;
    choose({scores.row(r), static_cast<size_t>(experts.count)}, experts,
           {to.order.data() + r * experts.count, static_cast<size_t>(experts.count)},
           {to.chosen.data() + at, used_experts}, {to.weights.data() + at, used_experts});
  });

  const size_t pairs = static_cast<size_t>(x.rows) * used_experts;
  std::fill(to.groups.begin(), to.groups.end(), size_t{0});
  for (size_t i = 0; i < pairs; ++i) ++to.groups[static_cast<size_t>(to.chosen[i])];
  // Each entry becomes the end of its group, and then, as rows are placed from the last to the first, its
  // beginning.
  std::partial_sum(to.groups.begin(), to.groups.end(), to.groups.begin());
  for (size_t i = pairs; i-- > 0;) {
    to.rows[--to.groups[static_cast<size_t>(to.chosen[i])]] = {static_cast<int32_t>(i / used_experts),
                                                               to.weights[i]};
  }
}

/// Takes the experts one after the other, each with all rows that want it, and reads the weights of no other.
/// So what a row's experts give is added up in the order of the experts, which depends on that row alone.
Matrix<float> Decoder::ForwardPass::experts(int64_t layer_index, Matrix<const float> x) {
  ExpertWorkspace& room = work.experts;
  const LayerWeights& weights = decoder.weights_.layers[static_cast<size_t>(layer_index)];
  route(layer_index, x);
  const Matrix<float> sums(room.sums.data(), x.rows, hidden_width);
  each_row([&](int64_t r) { std::fill_n(sums.row(r), hidden_width, 0.0f); });
  const int64_t width = round_up<int64_t>(config.hidden_size, kPanelWidth);
  for (size_t e = 0; e < weights.experts.size(); ++e) {
    const std::span<const ExpertRow> rows =
        std::span(room.rows).subspan(room.groups[e], room.groups[e + 1] - room.groups[e]);
    if (rows.empty()) continue;
    const Matrix<float> inputs(room.gathered.data(), std::ssize(rows), hidden_width);
    each_of(inputs.rows, [&](int64_t i) {
      std::copy_n(x.row(rows[static_cast<size_t>(i)].row), hidden_width, inputs.row(i));
    });
    static const Buffer<float> kNoOrder;
    const ExpertWeights& expert = weights.experts[e];
    const Matrix<float> given = feed_forward(
        {expert.gate_up, kNoOrder, expert.gate_up_bias, expert.down, kNoOrder, expert.down_bias}, inputs);
    each_of(given.rows, [&](int64_t i) {
      const ExpertRow& row = rows[static_cast<size_t>(i)];
      kernel.scale(given.row(i), width, row.weight);
      kernel.add(sums.row(row.row), given.row(i), width);
    });
  }
  return sums;
}

}  // namespace verbatim
