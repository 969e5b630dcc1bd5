#include "checkpoint/gguf_experts.h"

#include <charconv>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/expert_names.h"
#include "checkpoint/layout.h"

namespace verbatim {

namespace {

constexpr std::string_view kStack = "_exps.weight";
constexpr std::string_view kWeight = ".weight";

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
  if (config.experts.count == 0 || !name.ends_with(kStack)) return {{name, tensor}};
  const std::vector<int64_t>& shape = tensor.shape;
  if (shape.size() != 3 || shape[0] != config.experts.count) {
    bad_input("{}: tensor {} has the shape {} but should hold the matrices of {} experts", where,
              printable(name), shape_text(shape), config.experts.count);
  }
  const std::string stem = name.substr(0, name.size() - kStack.size());
  const size_t bytes = tensor.data.size() / static_cast<size_t>(shape[0]);
  std::vector<std::pair<std::string, TensorView>> experts;
  for (int64_t e = 0; e < shape[0]; ++e) {
    experts.push_back({fmt::format("{}.{}{}", stem, e, kWeight),
                       {.dtype = tensor.dtype,
                        .shape = {shape[1], shape[2]},
                        .data = tensor.data.subspan(static_cast<size_t>(e) * bytes, bytes)}});
  }
  return experts;
}

std::optional<std::string> expert_tensor_name(std::string_view rest, const ModelConfig& config) {
  if (config.experts.count == 0) return std::nullopt;
  const ExpertNames names = expert_names(config);
  if (rest == "ffn_gate_inp.weight") return names.router_weight();
  const MatrixName matrices[] = {{"ffn_gate.", names.gate}, {"ffn_up.", names.up}, {"ffn_down.", names.down}};
  for (const MatrixName& matrix : matrices) {
    if (!rest.starts_with(matrix.gguf) || !rest.ends_with(kWeight)) continue;
    if (rest.size() <= matrix.gguf.size() + kWeight.size()) continue;
    const std::string_view number =
        rest.substr(matrix.gguf.size(), rest.size() - matrix.gguf.size() - kWeight.size());
    const std::optional<int64_t> expert = whole_number(number);
    if (expert) return names.weight(*expert, matrix.hugging_face);
  }
  return std::nullopt;
}

}  // namespace verbatim
