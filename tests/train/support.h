#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fisher.h"
#include "graph_library.h"
#include "host_weights.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim::test {

/// Sequences of tokens of a tiny model, drawn from nothing but their numbers.
inline std::vector<std::vector<int32_t>> tiny_samples(int64_t count, int64_t length,
                                                      int32_t vocabulary = 256) {
  std::vector<std::vector<int32_t>> samples(static_cast<size_t>(count));
  int32_t state = 1;
  for (std::vector<int32_t>& sample : samples) {
    for (int64_t i = 0; i < length; ++i) {
      state = (state * 167 + 41) % 7919;
      sample.push_back(state % vocabulary);
    }
  }
  return samples;
}

/// The mean loss of a sequence by the graph in one type.
template <typename T>
double graph_loss(const Checkpoint& checkpoint, const std::vector<int32_t>& sample) {
  ThreadTeam team(1);
  const ModelConfig& config = checkpoint.config;
  const auto rows = std::ssize(sample) - 1;
  const std::span<const int32_t> tokens(sample);
  std::vector<T> stream =
      train::embed<T>(checkpoint, train::read_positions(checkpoint), tokens.first(static_cast<size_t>(rows)));
  for (int32_t layer = 0; layer < config.layers; ++layer) {
    const train::HostWeights<T> weights = train::read_host_weights<T>(checkpoint, layer, rows, team);
    train::graph_maker<T>().layer(config, weights)->forward(stream, stream);
  }
  const train::HostWeights<T> weights = train::read_host_weights<T>(checkpoint, -1, rows, team);
  return train::graph_maker<T>().loss(config, weights)->loss(stream, tokens.subspan(1));
}

/// The options for such sequences.
inline train::FisherOptions tiny_options(const std::vector<std::vector<int32_t>>& samples) {
  train::FisherOptions options;
  options.samples = {.samples = std::ssize(samples), .length = std::ssize(samples.front()), .seed = 0};
  return options;
}

}  // namespace verbatim::test
