#include "checkpoint/gguf_experts.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/expert_names.h"
#include "checkpoint/layout.h"

namespace verbatim {

namespace {

constexpr std::string_view kStack = "_exps";
constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kBias = ".bias";

struct MatrixName {
  std::string_view gguf;
  std::string_view hugging_face;
};

/// The number that a text is, written as to_string() would; nothing for any other text.
std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || std::to_string(number) != text) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

std::vector<std::pair<std::string, TensorView>> split_experts(const std::string& name,
                                                              const TensorView& tensor,
                                                              const ModelConfig& config,
                                                              const std::string& where) {
  const bool bias = name.ends_with(kBias);
  const std::string_view end = bias ? kBias : kWeight;
  const std::string whole = name.substr(0, name.size() - std::min(name.size(), end.size()));
  if (config.experts.count == 0 || !name.ends_with(end) || !whole.ends_with(kStack)) return {{name, tensor}};
  const std::vector<int64_t>& shape = tensor.shape;
  if (shape.size() != (bias ? 2 : 3) || shape[0] != config.experts.count) {
    bad_input("{}: tensor {} has the shape {} but should hold the {} of {} experts", where, printable(name),
              shape_text(shape), bias ? "biases" : "matrices", config.experts.count);
  }
  const std::string stem = whole.substr(0, whole.size() - kStack.size());
  const size_t bytes = tensor.data.size() / static_cast<size_t>(shape[0]);
  std::vector<std::pair<std::string, TensorView>> experts;
  for (int64_t e = 0; e < shape[0]; ++e) {
    experts.push_back({fmt::format("{}.{}{}", stem, e, end),
                       {.dtype = tensor.dtype,
                        .shape = {shape.begin() + 1, shape.end()},
                        .data = tensor.data.subspan(static_cast<size_t>(e) * bytes, bytes)}});
  }
  return experts;
}

std::optional<std::string> expert_tensor_name(std::string_view rest, const ModelConfig& config) {
  if (config.experts.count == 0) return std::nullopt;
  const ExpertNames names = expert_names(config);
  if (rest == "ffn_gate_inp.weight") return names.router_weight();
  if (rest == "ffn_gate_inp.bias") return names.router_bias();
  const bool bias = rest.ends_with(kBias);
  const std::string_view end = bias ? kBias : kWeight;
  const MatrixName matrices[] = {{"ffn_gate.", names.gate}, {"ffn_up.", names.up}, {"ffn_down.", names.down}};
  for (const MatrixName& matrix : matrices) {
    if (!rest.starts_with(matrix.gguf) || !rest.ends_with(end)) continue;
    if (rest.size() <= matrix.gguf.size() + end.size()) continue;
    const std::string_view number =
        rest.substr(matrix.gguf.size(), rest.size() - matrix.gguf.size() - end.size());
    const std::optional<int64_t> expert = whole_number(number);
    if (!expert) continue;
    return bias ? names.bias(*expert, matrix.hugging_face) : names.weight(*expert, matrix.hugging_face);
  }
  return std::nullopt;
}

std::optional<int64_t> expert_of(std::string_view name, const ModelConfig& config) {
  if (config.experts.count == 0) return std::nullopt;
  const std::string experts = fmt::format(".{}experts.", expert_names(config).part);
  const size_t at = name.find(experts);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = name.substr(at + experts.size());
  const std::optional<int64_t> expert = whole_number(rest.substr(0, rest.find('.')));
  return expert && *expert >= 0 && *expert < config.experts.count ? expert : std::nullopt;
}

}  // namespace verbatim
