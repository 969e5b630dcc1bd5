#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/model_config.h"

namespace verbatim::train {

// The graph of a decoder in LibTorch, layer by layer, for gradients of the loss. Where the engine's passes
// (model/decoder.cpp) round keys, values and queries to BF16, the graph does not: all of it is in the type T,
// float or double. It computes on the calling thread alone, so that its results do not depend on how many
// threads work side by side. This header is free of LibTorch, which is slow to compile and is loaded by
// graph_library.h.

/// A matrix in the engine's order of rows, with a row for each output.
template <typename T>
struct HostMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<T> values;
};

/// The weights of one layer, or those around the layers, by the names of their specs (model/weights.h)
/// without "layers.<index>.": "qkv", "experts.3.down", "attention_norm", "head". A layer has besides what
/// sets it apart from other layers.
template <typename T>
struct HostWeights {
  std::map<std::string, HostMatrix<T>> matrices;
  std::map<std::string, std::vector<T>> vectors;
  int64_t window = 0;      ///< the number of positions that a position sees, itself included; 0: all
  int64_t pairs = 0;       ///< the number of rotated pairs of a head; 0: the layer does not rotate
  std::vector<T> cosines;  ///< [rows][pairs]: of the angles at the positions from 0 on
  std::vector<T> sines;    ///< [rows][pairs]: of the same angles
};

/// Is given the gradient of one matrix, row after row as its values are. A matrix that the loss does not
/// depend on, as that of an expert which no row chose, is left out.
template <typename T>
using GradientSink = std::function<void(const std::string& matrix, std::span<const T> gradient)>;

/// One layer of a decoder over the rows of one sequence, whose positions begin with 0. Its functions may run
/// on several threads at once.
template <typename T>
class LayerGraph {
 public:
  virtual ~LayerGraph() = default;
  /// Computes the residual stream after the layer from that before it, both [rows][hidden].
  virtual void forward(std::span<const T> before, std::span<T> after) const = 0;
  /// Computes the layer again and hands out the gradients of its matrices, given the gradient of the loss
  /// with respect to the stream after it. Writes that with respect to the stream before it; the two may be
  /// the same memory.
  virtual void backward(std::span<const T> before, std::span<const T> after_gradient,
                        std::span<T> before_gradient, const GradientSink<T>& sink) const = 0;
};

/// The final norm, the output matrix and the loss.
template <typename T>
class LossGraph {
 public:
  virtual ~LossGraph() = default;
  /// Returns the mean negative log likelihood of the targets, one for each row of the stream, in nats.
  virtual double loss(std::span<const T> stream, std::span<const int32_t> targets) const = 0;
  /// Returns the same, writes its gradient with respect to the stream and hands out that of the output
  /// matrix, taken by itself where the matrix is the embedding too, unless `sink` is empty.
  virtual double backward(std::span<const T> stream, std::span<const int32_t> targets,
                          std::span<T> stream_gradient, const GradientSink<T>& sink) const = 0;
};

/// Makes graphs in one type. They refer to the config and to the weights.
template <typename T>
struct GraphMaker {
  std::unique_ptr<LayerGraph<T>> (*layer)(const ModelConfig& config, const HostWeights<T>& weights);
  std::unique_ptr<LossGraph<T>> (*loss)(const ModelConfig& config, const HostWeights<T>& weights);
};

/// What the library with LibTorch gives.
struct GraphMakers {
  GraphMaker<float> in_float;
  GraphMaker<double> in_double;
};

}  // namespace verbatim::train
