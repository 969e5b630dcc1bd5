#include "layer_graph.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <memory>
#include <mutex>

namespace verbatim::train {

namespace {

using at::Tensor;

template <typename T>
constexpr at::ScalarType kType = at::kFloat;
template <>
constexpr at::ScalarType kType<double> = at::kDouble;

/// A tensor over memory that it does not own. LibTorch has no tensors of constants; nothing writes to these.
template <typename T>
Tensor view_of(std::span<const T> values, at::IntArrayRef shape) {
  return at::from_blob(const_cast<T*>(values.data()), shape, kType<T>);
}

/// The matrices of one call as leaves of its graph, which share the memory of the weights.
template <typename T>
class Leaves {
 public:
  Leaves(const HostWeights<T>& weights, bool wanted) : weights_(weights) {
    for (const auto& [name, matrix] : weights.matrices) {
      Tensor leaf = view_of(std::span<const T>(matrix.values), {matrix.rows, matrix.columns});
      leaf.requires_grad_(wanted);
      matrices_.emplace(name, std::move(leaf));
    }
  }

  const HostWeights<T>& weights() const { return weights_; }
  const Tensor& matrix(const std::string& name) const { return matrices_.at(name); }
  const std::map<std::string, Tensor>& matrices() const { return matrices_; }
  bool has(const std::string& name) const { return weights_.vectors.contains(name); }
  Tensor vector(const std::string& name) const {
    const std::vector<T>& values = weights_.vectors.at(name);
    return view_of(std::span<const T>(values), {std::ssize(values)});
  }
  /// x · matrixᵀ + bias, if there is one of that name.
  Tensor multiply(const Tensor& x, const std::string& name) const {
    const Tensor product = at::matmul(x, matrix(name).t());
    return has(name + "_bias") ? product + vector(name + "_bias") : product;
  }

 private:
  const HostWeights<T>& weights_;
  std::map<std::string, Tensor> matrices_;
};

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  return x * at::rsqrt(x.square().mean(-1, true) + epsilon) * weight;
}

/// The input of a part: the stream, normed if there is a norm of that name.
template <typename T>
Tensor read_stream(const ModelConfig& config, const Leaves<T>& leaves, const Tensor& stream,
                   const std::string& norm) {
  if (!leaves.has(norm)) return stream;
  const Tensor weight = leaves.vector(norm);
  if (!config.layer_norm) return rms_norm(stream, weight, config.rms_norm_epsilon);
  return at::layer_norm(stream, weight.sizes(), weight, leaves.vector(norm + "_bias"),
                        config.rms_norm_epsilon);
}

/// The stream with the result of a part added.
template <typename T>
Tensor add_to_stream(const ModelConfig& config, const Leaves<T>& leaves, const Tensor& stream, Tensor y,
                     const std::string& norm) {
  if (leaves.has(norm)) y = rms_norm(y, leaves.vector(norm), config.rms_norm_epsilon);
  return stream + y * config.scales.residual;
}

Tensor capped(const Tensor& x, float cap) {
  return cap == 0.0f ? x : at::tanh(x / cap) * cap;
}

/// Rotates the two halves of the first elements of heads, [rows][heads][head_dim].
Tensor rotate(const Tensor& heads, const Tensor& cosines, const Tensor& sines) {
  const int64_t half = cosines.size(2);
  const Tensor a = heads.slice(2, 0, half);
  const Tensor b = heads.slice(2, half, 2 * half);
  return at::cat({a * cosines - b * sines, b * cosines + a * sines, heads.slice(2, 2 * half)}, 2);
}

/// What rows see: 0, or -infinity where they do not.
template <typename T>
Tensor mask(int64_t rows, int64_t window) {
  const Tensor seen = at::ones({rows, rows}, at::kBool).tril();
  const Tensor near = window > 0 ? seen.triu(1 - window) : seen;
  return at::zeros({rows, rows}, kType<T>)
      .masked_fill(near.logical_not(), -std::numeric_limits<double>::infinity());
}

template <typename T>
Tensor attention(const ModelConfig& config, const Leaves<T>& leaves, const Tensor& x) {
  const int64_t rows = x.size(0);
  const int64_t query_columns = int64_t{config.heads} * config.head_dim;
  const int64_t kv_columns = int64_t{config.kv_heads} * config.head_dim;
  const HostWeights<T>& weights = leaves.weights();
  const Tensor qkv = leaves.multiply(x, "qkv");
  const auto heads = [&](int64_t first, int64_t count, const std::string& norm) {
    Tensor part = qkv.slice(1, first, first + count * config.head_dim);
    const bool whole = config.head_norm == HeadNorm::kWhole;
    if (!norm.empty() && whole) part = rms_norm(part, leaves.vector(norm), config.rms_norm_epsilon);
    part = part.reshape({rows, count, config.head_dim});
    if (!norm.empty() && !whole) part = rms_norm(part, leaves.vector(norm), config.rms_norm_epsilon);
    return part;
  };
  const bool normed = config.head_norm != HeadNorm::kNone;
  Tensor queries = heads(0, config.heads, normed ? "query_norm" : "");
  Tensor keys = heads(query_columns, config.kv_heads, normed ? "key_norm" : "");
  Tensor values = heads(query_columns + kv_columns, config.kv_heads, "");
  if (weights.pairs > 0) {
    const auto angles = [&](const std::vector<T>& values) {
      return view_of(std::span<const T>(values), {rows, 1, weights.pairs});
    };
    queries = rotate(queries, angles(weights.cosines), angles(weights.sines));
    keys = rotate(keys, angles(weights.cosines), angles(weights.sines));
  }
  const int64_t group = config.heads / config.kv_heads;
  queries = queries.transpose(0, 1);
  keys = keys.transpose(0, 1).repeat_interleave(group, 0);
  values = values.transpose(0, 1).repeat_interleave(group, 0);
  const double scale = config.scales.attention != 0.0f ? static_cast<double>(config.scales.attention)
                                                       : 1.0 / std::sqrt(config.head_dim);
  Tensor scores = at::matmul(queries, keys.transpose(1, 2)) * scale;
  scores = capped(scores, config.soft_caps.scores) + mask<T>(rows, weights.window);
  if (config.head_sinks) {
    const Tensor sinks = leaves.vector("head_sinks").view({config.heads, 1, 1}).expand({-1, rows, 1});
    scores = at::cat({scores, sinks}, 2);
  }
  const Tensor shares = at::softmax(scores, -1).slice(2, 0, rows);
  return leaves.multiply(at::matmul(shares, values).transpose(0, 1).reshape({rows, query_columns}), "output");
}

/// Gate, activation, up and down; `part` is the beginning of the matrices' names.
template <typename T>
Tensor feed_forward(const ModelConfig& config, const Leaves<T>& leaves, const Tensor& x,
                    const std::string& part) {
  const Tensor both = leaves.multiply(x, part + "gate_up");
  const auto down = [&](const Tensor& inner) { return leaves.multiply(inner, part + "down"); };
  const bool gelu = config.activation == Activation::kGeluTanh;
  if (config.plain_mlp) return down(gelu ? at::gelu(both, "tanh") : at::relu(both));
  const int64_t inner = both.size(1) / 2;
  const Tensor gate = both.slice(1, 0, inner);
  const Tensor up = both.slice(1, inner);
  if (config.activation == Activation::kClampedSilu) {
    const double limit = config.activation_limit;
    const Tensor least = gate.clamp_max(limit);
    return down(least * at::sigmoid(least * 1.702) * (up.clamp(-limit, limit) + 1.0));
  }
  return down((gelu ? at::gelu(gate, "tanh") : at::silu(gate)) * up);
}

template <typename T>
Tensor experts(const ModelConfig& config, const Leaves<T>& leaves, const Tensor& x) {
  const Experts& experts = config.experts;
  const Tensor router = leaves.vector("router").view({experts.count, config.hidden_size});
  Tensor scores = at::matmul(x, router.t());
  if (leaves.has("router_bias")) scores = scores + leaves.vector("router_bias");
  const auto [best, chosen] = at::topk(scores, experts.used, -1);
  const Tensor weights =
      experts.normalized ? at::softmax(best, -1) : at::softmax(scores, -1).gather(-1, chosen);
  Tensor sum = at::zeros_like(x);
  for (int32_t e = 0; e < experts.count; ++e) {
    const Tensor places = at::nonzero(chosen == e);  // pairs of row and place among the chosen
    if (places.size(0) == 0) continue;
    const Tensor rows = places.select(1, 0);
    const Tensor given =
        feed_forward(config, leaves, x.index_select(0, rows), "experts." + std::to_string(e) + ".");
    const Tensor share = weights.index({rows, places.select(1, 1)}).unsqueeze(1);
    sum = sum.index_add(0, rows, given * share);
  }
  return sum;
}

template <typename T>
Tensor layer_output(const ModelConfig& config, const Leaves<T>& leaves, Tensor stream) {
  const Tensor attended = attention(config, leaves, read_stream(config, leaves, stream, "attention_norm"));
  stream = add_to_stream(config, leaves, stream, attended, "attention_end_norm");
  const Tensor x = read_stream(config, leaves, stream, "mlp_norm");
  const Tensor y = leaves.has("router") ? experts(config, leaves, x) : feed_forward(config, leaves, x, "");
  return add_to_stream(config, leaves, stream, y, "mlp_end_norm");
}

template <typename T>
Tensor loss_of(const ModelConfig& config, const Leaves<T>& leaves, const Tensor& stream,
               std::span<const int32_t> targets) {
  const Tensor x = read_stream(config, leaves, stream, "final_norm");
  const Tensor logits = capped(leaves.multiply(x, "head") * config.scales.logits, config.soft_caps.logits);
  const Tensor wanted =
      at::from_blob(const_cast<int32_t*>(targets.data()), {std::ssize(targets)}, at::kInt).to(at::kLong);
  return at::nll_loss(at::log_softmax(logits, -1), wanted);
}

/// Hands out gradients, as torch::autograd::grad() returns them from `first` on, by the names of the leaves.
template <typename T>
void hand_out(const Leaves<T>& leaves, const std::vector<Tensor>& gradients, size_t first,
              const GradientSink<T>& sink) {
  for (const auto& [name, leaf] : leaves.matrices()) {
    const Tensor& gradient = gradients[first++];
    if (!gradient.defined()) continue;
    const Tensor plain = gradient.contiguous();
    sink(name, {plain.template data_ptr<T>(), static_cast<size_t>(plain.numel())});
  }
}

template <typename T>
Tensor stream_of(std::span<const T> values, int64_t hidden) {
  return view_of(values, {std::ssize(values) / hidden, hidden});
}

template <typename T>
void copy_out(const Tensor& from, std::span<T> to) {
  const Tensor plain = from.contiguous();
  std::copy_n(plain.template data_ptr<T>(), to.size(), to.data());
}

/// Held while LibTorch computes: with several threads at a time, about one run in thirty had other bytes.
std::mutex& computing() {
  static std::mutex mutex;
  return mutex;
}

template <typename T>
class TorchLayer : public LayerGraph<T> {
 public:
  TorchLayer(const ModelConfig& config, const HostWeights<T>& weights) : config_(config), weights_(weights) {}

  void forward(std::span<const T> before, std::span<T> after) const override {
    const std::lock_guard alone(computing());
    const at::NoGradGuard no_gradients;
    const Leaves<T> leaves(weights_, false);
    copy_out(layer_output(config_, leaves, stream_of(before, config_.hidden_size)), after);
  }

  void backward(std::span<const T> before, std::span<const T> after_gradient, std::span<T> before_gradient,
                const GradientSink<T>& sink) const override {
    std::unique_lock alone(computing());
    const Leaves<T> leaves(weights_, true);
    Tensor stream = stream_of(before, config_.hidden_size);
    stream.requires_grad_(true);
    std::vector<Tensor> inputs = {stream};
    for (const auto& [name, leaf] : leaves.matrices()) inputs.push_back(leaf);
    const std::vector<Tensor> gradients =
        torch::autograd::grad({layer_output(config_, leaves, stream)}, inputs,
                              {stream_of(after_gradient, config_.hidden_size)}, c10::nullopt, false, true);
    copy_out(gradients.front(), before_gradient);
    alone.unlock();  // the sink may wait for others
    hand_out(leaves, gradients, 1, sink);
  }

 private:
  const ModelConfig& config_;
  const HostWeights<T>& weights_;
};

template <typename T>
class TorchLoss : public LossGraph<T> {
 public:
  TorchLoss(const ModelConfig& config, const HostWeights<T>& weights) : config_(config), weights_(weights) {}

  double loss(std::span<const T> stream, std::span<const int32_t> targets) const override {
    const std::lock_guard alone(computing());
    const at::NoGradGuard no_gradients;
    const Leaves<T> leaves(weights_, false);
    return loss_of(config_, leaves, stream_of(stream, config_.hidden_size), targets).template item<double>();
  }

  double backward(std::span<const T> stream, std::span<const int32_t> targets, std::span<T> stream_gradient,
                  const GradientSink<T>& sink) const override {
    std::unique_lock alone(computing());
    const Leaves<T> leaves(weights_, static_cast<bool>(sink));
    Tensor input = stream_of(stream, config_.hidden_size);
    input.requires_grad_(true);
    std::vector<Tensor> inputs = {input};
    if (sink) {
      for (const auto& [name, leaf] : leaves.matrices()) inputs.push_back(leaf);
    }
    const Tensor loss = loss_of(config_, leaves, input, targets);
    const std::vector<Tensor> gradients =
        torch::autograd::grad({loss}, inputs, {}, c10::nullopt, false, true);
    copy_out(gradients.front(), stream_gradient);
    alone.unlock();  // the sink may wait for others
    if (sink) hand_out(leaves, gradients, 1, sink);
    return loss.template item<double>();
  }

 private:
  const ModelConfig& config_;
  const HostWeights<T>& weights_;
};

template <typename T>
GraphMaker<T> maker() {
  return {[](const ModelConfig& config, const HostWeights<T>& weights) -> std::unique_ptr<LayerGraph<T>> {
            return std::make_unique<TorchLayer<T>>(config, weights);
          },
          [](const ModelConfig& config, const HostWeights<T>& weights) -> std::unique_ptr<LossGraph<T>> {
            return std::make_unique<TorchLoss<T>>(config, weights);
          }};
}

/// Has LibTorch and the library of its products use one thread for each call: sums would depend on how many.
void use_one_thread_per_call() {
  at::set_num_threads(1);
  // OpenBLAS comes with threads or without.
  if (void* const found = dlsym(RTLD_DEFAULT, "openblas_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(found)(1);
  }
}

}  // namespace

}  // namespace verbatim::train

/// What the program looks up in this library.
extern "C" __attribute__((visibility("default"))) const verbatim::train::GraphMakers*
verbatim_graph_makers() {
  using namespace verbatim::train;
  static const GraphMakers makers = [] {
    use_one_thread_per_call();
    return GraphMakers{maker<float>(), maker<double>()};
  }();
  return &makers;
}
