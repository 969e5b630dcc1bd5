#include "prepare/inflate_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/printable.h"
#include "checkpoint/hf_config.h"

namespace verbatim {

using nlohmann::ordered_json;

namespace {

std::string name_of(const std::filesystem::path& model) {
  std::error_code ignored;
  return printable(std::filesystem::weakly_canonical(model, ignored).filename().string());
}

/// The layers of the larger model whose source is in a list of layers.
std::vector<int32_t> inflated_list(const std::vector<int32_t>& sources,
                                   const std::vector<InflatedLayer>& layers) {
  std::vector<int32_t> result;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (std::find(sources.begin(), sources.end(), layers[i].source) != sources.end()) {
      result.push_back(static_cast<int32_t>(i));
    }
  }
  return result;
}

}  // namespace

std::vector<InflatedLayer> inflated_layers(int32_t layers, int32_t depth) {
  const int64_t extra = int64_t{depth} - layers;
  std::vector<InflatedLayer> result;
  int64_t next = 0;
  for (int32_t layer = 0; layer < layers; ++layer) {
    result.push_back({layer, false});
    for (; next < extra && (2 * next + 1) * layers / (2 * extra) == layer; ++next) {
      result.push_back({layer, true});
    }
  }
  return result;
}

std::string inflated_config(std::string_view config_json, const Checkpoint& checkpoint, int32_t width,
                            const std::vector<InflatedLayer>& layers) {
  const ModelConfig& config = checkpoint.config;
  ordered_json fields = ordered_json::parse(config_json);
  const auto depth = static_cast<int32_t>(layers.size());
  fields["hidden_size"] = config.hidden_size * width;
  fields["intermediate_size"] = config.intermediate_size * width;
  fields["num_hidden_layers"] = depth;
  fields["num_attention_heads"] = config.heads * width;
  fields["num_key_value_heads"] = config.kv_heads * width;
  fields["head_dim"] = config.head_dim;
  if (fields.contains("layer_types") && fields["layer_types"].is_array()) {
    const ordered_json types = fields["layer_types"];
    fields["layer_types"] = ordered_json::array();
    for (const InflatedLayer& layer : layers) {
      const auto source = static_cast<size_t>(layer.source);
      if (source < types.size()) fields["layer_types"].push_back(types[source]);
    }
  }
  const bool qwen =
      config.architecture == Architecture::kQwen2 || config.architecture == Architecture::kQwen3;
  if (qwen && config.sliding_window == 0) {
    // So many of the first layers attend to everything. If that was all of them, it stays so.
    const auto windowless = fields.find("max_window_layers");
    const bool stated = windowless != fields.end() && windowless->is_number();
    const double full = stated ? windowless->get<double>() : 28.0;  // what Transformers assumes
    if (full >= config.layers && full < depth) fields["max_window_layers"] = depth;
  } else if (qwen) {
    const std::vector<int32_t> full = inflated_list(config.windowless_layers, layers);
    if (!fields.contains("layer_types")) fields["max_window_layers"] = full.size();
  }
  const bool gemma =
      config.architecture == Architecture::kGemma2 || config.architecture == Architecture::kGemma3;
  if (gemma && config.sliding_window > 0) {
    std::vector<std::string> types(layers.size(), "sliding_attention");
    for (const int32_t layer : inflated_list(config.windowless_layers, layers)) {
      types[static_cast<size_t>(layer)] = "full_attention";
    }
    fields["layer_types"] = types;
  }
  if (config.architecture == Architecture::kSmolLm3) {
    std::vector<int32_t> rotates(layers.size(), 1);
    for (const int32_t layer : inflated_list(config.unrotated_layers, layers)) {
      rotates[static_cast<size_t>(layer)] = 0;
    }
    fields["no_rope_layers"] = rotates;
  }
  if (config.architecture == Architecture::kQwen3Moe) {
    std::vector<int32_t> dense(layers.size());
    std::iota(dense.begin(), dense.end(), 0);
    if (config.experts.count > 0) {
      fields["moe_intermediate_size"] = config.experts.intermediate_size * width;
      dense = inflated_list(config.dense_layers, layers);
    }
    fields["decoder_sparse_step"] = 1;
    fields["mlp_only_layers"] = dense;
  }
  fields[kInflatedKey] = {{"from", name_of(checkpoint.path)}, {"width", width}, {"depth", depth}};
  return fields.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string inflated_readme(const Checkpoint& checkpoint, int32_t width, int32_t depth) {
  const ModelConfig& config = checkpoint.config;
  return fmt::format(
      R"(# {0}, enlarged to measure speed

This model was made of the model {0} by `verbatim inflate --width {1} --depth {2}`. It computes the same
function in more arithmetic: {3} layers became {2}, and the hidden size {4} became {5}.

It is for measuring speed at this size with the text of a trained model, and so with drafts that are accepted
as often as those of a trained model.

It is not a better model. It says what {0} says, up to rounding, so whatever concerns quality is to be
measured on {0}. Its weights are more regular than those of a model trained at this size: every channel is
there {1} times, and {6} of the layers add nothing because the matrices that end them are zero. Numbers that
depend on the weights' entropy (compression, sparsity, pruning) mean nothing here.
)",
      name_of(checkpoint.path), width, depth, config.layers, config.hidden_size, config.hidden_size * width,
      depth - config.layers);
}

}  // namespace verbatim
