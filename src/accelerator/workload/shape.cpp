#include "accelerator/workload/shape.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "accelerator/fail.h"
#include "accelerator/parameters/fields.h"

namespace verbatim::accelerator {

namespace {

using Json = nlohmann::json;

constexpr int64_t kMostField = int64_t{1} << 24;
constexpr int64_t kMostLayers = 4096;
constexpr double kMostWeights = 1e13;

/// Families whose MLP has no gate.
const std::set<std::string> kUngated = {"gpt2",   "gpt_neo", "gpt_neox", "gptj",        "opt",
                                        "falcon", "bloom",   "phi",      "gpt_bigcode", "starcoder2"};

/// Reads the fields of a configuration, which families call by different names.
class Config {
 public:
  Config(const Json& json, const std::string& where) : json_(json), where_(where) {}

  /// A number of at least 1 under the first of the names that there is.
  std::optional<int64_t> find(std::initializer_list<const char*> names) const {
    const std::optional<int64_t> value = find_or_zero(names);
    if (value == 0) bad_input("{}: {} must be at least 1", where_, *names.begin());
    return value;
  }
  std::optional<int64_t> find_or_zero(std::initializer_list<const char*> names) const {
    for (const char* const name : names) {
      const auto found = json_.find(name);
      if (found == json_.end() || found->is_null()) continue;
      if (!found->is_number_integer()) bad_input("{}: {} must be a whole number", where_, name);
      const bool huge =
          found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(kMostField);
      const int64_t value = huge ? kMostField + 1 : found->get<int64_t>();
      if (value < 0 || value > kMostField) {
        bad_input("{}: {} must be from 0 to {}, not {}", where_, name, kMostField, found->dump());
      }
      return value;
    }
    return std::nullopt;
  }
  bool is_true(const char* name) const {
    const auto found = json_.find(name);
    return found != json_.end() && found->is_boolean() && found->get<bool>();
  }
  int64_t need(std::initializer_list<const char*> names) const {
    if (const auto value = find(names)) return *value;
    bad_input("{}: {} is missing", where_, *names.begin());
  }

 private:
  const Json& json_;
  const std::string& where_;
};

/// The name of a family, if it can be printed.
std::string name_of(const Json& json) {
  const auto type = json.find("model_type");
  if (type == json.end() || !type->is_string()) return "model";
  const std::string name = type->get<std::string>();
  const auto printable = [](char c) { return c > ' ' && c <= '~'; };
  return name.size() <= 64 && std::ranges::all_of(name, printable) ? name : "model";
}

/// Refuses what has parts that are not simulated, and sizes that no machine holds.
void check_shape(const Shape& shape, const Config& config, const std::string& where) {
  for (const char* const key : {"kv_lora_rank", "n_shared_experts", "shared_expert_intermediate_size"}) {
    if (config.find_or_zero({key}).value_or(0) > 0) bad_input("{}: {} is not simulated", where, key);
  }
  if (shape.layers > kMostLayers) {
    bad_input("{}: num_hidden_layers must be at most {}, not {}", where, kMostLayers, shape.layers);
  }
  const auto size = [](int64_t number) { return static_cast<double>(number); };
  const double attention = size(shape.hidden) * size(shape.heads + shape.kv_heads) * size(shape.head_size);
  const double mlp =
      size(shape.hidden) * size(shape.intermediate) * size(std::max<int64_t>(shape.experts, 1));
  const double weights = size(shape.layers) * (attention + mlp) + size(shape.hidden) * size(shape.vocabulary);
  if (weights > kMostWeights) {
    bad_input("{}: the model would have {:.3g} weights, and at most {:.3g} are simulated", where, weights,
              kMostWeights);
  }
}

}  // namespace

int64_t Shape::weights_of_row() const {
  const int64_t attention = hidden * (2 * query_size() + 2 * kv_size());
  const int64_t mlp = (gated ? 3 : 2) * hidden * intermediate;
  return layers * (attention + std::max<int64_t>(experts_used, 1) * mlp + hidden * experts) +
         hidden * vocabulary;
}

Shape parse_config(std::string_view text, const std::string& where) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) bad_input("{}: is no JSON object; a config.json is needed", where);
  if (const auto inner = json.find("text_config"); inner != json.end() && inner->is_object()) {
    json = Json(*inner);
  }
  const Config config(json, where);
  Shape shape;
  shape.name = name_of(json);
  shape.hidden = config.need({"hidden_size", "n_embd", "d_model"});
  shape.layers = config.need({"num_hidden_layers", "n_layer", "num_layers"});
  shape.heads = config.need({"num_attention_heads", "n_head", "num_heads"});
  const bool one_for_all = config.is_true("multi_query") && !config.is_true("new_decoder_architecture");
  shape.kv_heads =
      one_for_all ? 1 : config.find({"num_key_value_heads", "num_kv_heads"}).value_or(shape.heads);
  shape.vocabulary = config.need({"vocab_size"});
  shape.gated = kUngated.count(shape.name) == 0;
  shape.experts = config.find_or_zero({"num_local_experts", "num_experts", "n_routed_experts"}).value_or(0);
  if (shape.experts > 0) {
    shape.experts_used = config.need({"num_experts_per_tok", "num_experts_per_token", "top_k"});
    shape.intermediate = config.need({"moe_intermediate_size", "intermediate_size"});
    if (shape.experts_used > shape.experts) {
      bad_input("{}: a row uses {} experts, and there are {}", where, shape.experts_used, shape.experts);
    }
  } else if (shape.gated) {
    shape.intermediate = config.need({"intermediate_size"});
  } else {
    shape.intermediate = config.find({"intermediate_size", "n_inner", "ffn_dim"}).value_or(4 * shape.hidden);
  }
  if (shape.heads % shape.kv_heads != 0) {
    bad_input("{}: {} heads cannot share {} of keys and values", where, shape.heads, shape.kv_heads);
  }
  const auto head_size = config.find({"head_dim"});
  if (!head_size && shape.hidden % shape.heads != 0) {
    bad_input("{}: hidden_size {} is no multiple of {} heads, and head_dim is missing", where, shape.hidden,
              shape.heads);
  }
  shape.head_size = head_size.value_or(shape.hidden / shape.heads);
  check_shape(shape, config, where);
  return shape;
}

Shape load_shape(const std::string& name_or_path) {
  for (const Shape& shape : paper_shapes()) {
    if (shape.name == name_or_path) return shape;
  }
  std::filesystem::path path = name_or_path;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) path /= "config.json";
  if (!std::filesystem::exists(path, error) && path.extension() != ".json") {
    std::vector<std::string> names;
    for (const Shape& shape : paper_shapes()) names.push_back(shape.name);
    bad_input("{} does not exist: give a config.json or one of {}", name_or_path, fmt::join(names, ", "));
  }
  return parse_config(read_file(path), path.string());
}

const std::vector<Shape>& paper_shapes() {
  const auto llama = [](const char* name, int64_t hidden, int64_t intermediate, int64_t layers, int64_t heads,
                        int64_t kv_heads, int64_t vocabulary) {
    return Shape{.name = name,
                 .hidden = hidden,
                 .intermediate = intermediate,
                 .layers = layers,
                 .heads = heads,
                 .kv_heads = kv_heads,
                 .head_size = 128,
                 .vocabulary = vocabulary};
  };
  static const std::vector<Shape> shapes = {llama("vicuna-7b", 4096, 11008, 32, 32, 32, 32000),
                                            llama("llama2-7b", 4096, 11008, 32, 32, 32, 32000),
                                            llama("llama3.1-8b", 4096, 14336, 32, 32, 8, 128256),
                                            llama("llama3.2-3b", 3072, 8192, 28, 24, 8, 128256),
                                            llama("llama2-13b", 5120, 13824, 40, 40, 40, 32000)};
  return shapes;
}

}  // namespace verbatim::accelerator
