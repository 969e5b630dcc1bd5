#include "checkpoint/quantization_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/printable.h"

namespace verbatim {

using nlohmann::json;

namespace {

constexpr const char* kKey = "quantization_config";
using Method = QuantizationConfig::Method;
using Strategy = QuantizationConfig::Strategy;

/// The keys that say how a model was made or run, and nothing about what is stored.
constexpr std::string_view kNeutral[] = {"quant_method",
                                         "method",
                                         "version",
                                         "backend",
                                         "model_name_or_path",
                                         "model_file_base_name",
                                         "dataset",
                                         "tokenizer",
                                         "batch_size",
                                         "model_seqlen",
                                         "pad_token_id",
                                         "meta",
                                         "uri",
                                         "damp_percent",
                                         "damp_auto_increment",
                                         "static_groups",
                                         "true_sequential",
                                         "mse",
                                         "parallel_packing",
                                         "lm_head",
                                         "block_name_to_quantize",
                                         "module_name_preceding_first_block",
                                         "modules_in_block_to_quantize",
                                         "cache_block_outputs",
                                         "use_exllama",
                                         "disable_exllama",
                                         "exllama_config",
                                         "max_input_length",
                                         "use_cuda_fp16",
                                         "do_fuse",
                                         "fuse_max_seq_len",
                                         "modules_to_fuse",
                                         "quantization_status",
                                         "global_compression_ratio",
                                         "use_deep_gemm",
                                         "dequantize",
                                         "act_group_aware"};

/// An object with the keys that were not asked for yet.
class Keys {
 public:
  Keys(const json& object, const std::string& where, std::string inside)
      : object_(object), where_(where), inside_(std::move(inside)), fields_(object, where, inside_) {}

  const JsonFields& fields() const { return fields_; }

  /// Refuses a value that changes what is stored, or that is not about weights.
  void refuse_set(std::initializer_list<const char*> keys) const {
    for (const char* const key : keys) {
      const json* const value = fields_.find(key);
      if (value == nullptr || value->empty() || *value == false) continue;
      bad_input("{}: {}.{} is not supported; use a model that is quantized without it", where_, inside_, key);
    }
  }

  /// Refuses keys that are none of these nor neutral.
  void refuse_others(std::initializer_list<std::string_view> known) const {
    for (const auto& item : object_.items()) {
      const std::string& key = item.key();
      if (std::ranges::find(known, key) != known.end() ||
          std::ranges::find(kNeutral, key) != std::end(kNeutral))
        continue;
      bad_input("{}: {}.{} is not understood; remove it if it does not change how weights are stored", where_,
                inside_, printable(key));
    }
  }

  /// Refuses a text that is none of these.
  std::string one_of(const char* key, const char* usual,
                     std::initializer_list<std::string_view> known) const {
    const std::string value = fields_.text(key).value_or(usual);
    if (std::ranges::find(known, value) == known.end()) {
      bad_input("{}: {}.{} {} is not supported; use a model with {}", where_, inside_, key, printable(value),
                fmt::join(known, " or "));
    }
    return value;
  }

  int one_of(const char* key, int value, std::initializer_list<int> known) const {
    if (std::ranges::find(known, value) == known.end()) {
      bad_input("{}: {}.{} {} is not supported; use a model with {}", where_, inside_, key, value,
                fmt::join(known, " or "));
    }
    return value;
  }

  /// The size of groups; 0 for -1, which stands for all inputs.
  int64_t group_size(const char* key) const {
    const int32_t size = fields_.required_integer(key);
    if (size != -1 && size < 1)
      bad_input("{}: {}.{} is {}; it should be positive", where_, inside_, key, size);
    return size == -1 ? 0 : size;
  }

  /// Two sizes of a block of weights.
  void blocks(const char* key, QuantizationConfig& config) const {
    const json* const value = fields_.find(key);
    std::vector<int32_t> sizes;
    for (const json& size : value != nullptr && value->is_array() ? *value : json::array()) {
      sizes.push_back(as_int32(size).value_or(0));
    }
    if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1) {
      bad_input("{}: {}.{} should be a list of two positive sizes", where_, inside_, key);
    }
    config.strategy = Strategy::kBlock;
    config.block_rows = sizes[0];
    config.block_columns = sizes[1];
  }

  void names(const char* key, std::vector<std::string>& names) const {
    const json* const value = fields_.find(key);
    if (value == nullptr) return;
    if (!value->is_array()) bad_input("{}: {}.{} should be a list of names", where_, inside_, key);
    for (const json& name : *value) {
      if (!name.is_string()) bad_input("{}: {}.{} should be a list of names", where_, inside_, key);
      names.push_back(name.get<std::string>());
    }
  }

 private:
  const json& object_;
  const std::string& where_;
  std::string inside_;
  JsonFields fields_;
};

QuantizationConfig parse_fp8(const Keys& keys) {
  QuantizationConfig config;
  keys.refuse_set({"kv_cache_scheme"});
  keys.refuse_others({"activation_scheme", "fmt", "weight_block_size", "modules_to_not_convert",
                      "ignored_layers", "kv_cache_scheme", "scale_fmt"});
  keys.one_of("activation_scheme", "dynamic", {"dynamic", "static"});
  keys.one_of("fmt", "e4m3", {"e4m3", "float8_e4m3fn", "e5m2"});
  keys.one_of("scale_fmt", "float", {"float", "ue8m0"});
  if (keys.fields().find("weight_block_size") != nullptr) keys.blocks("weight_block_size", config);
  keys.names("modules_to_not_convert", config.unquantized);
  keys.names("ignored_layers", config.unquantized);
  return config;
}

QuantizationConfig parse_gptq(const Keys& keys) {
  QuantizationConfig config;
  config.method = Method::kGptq;
  keys.refuse_set({"dynamic", "rotation", "adapter", "is_marlin_format"});
  keys.refuse_others({"bits", "group_size", "sym", "desc_act", "checkpoint_format", "format", "pack_dtype",
                      "dynamic", "rotation", "adapter", "is_marlin_format", "modules_to_not_convert"});
  config.bits = keys.one_of("bits", keys.fields().required_integer("bits"), {4, 8});
  config.strategy = Strategy::kGroup;
  config.group_size = keys.group_size("group_size");
  config.symmetric = keys.fields().boolean("sym").value_or(false);
  config.reordered = keys.fields().boolean("desc_act").value_or(false);
  keys.one_of("pack_dtype", "int32", {"int32"});
  const std::string newer = keys.one_of("format", "gptq", {"gptq", "gptq_v2"});
  const std::string format = keys.one_of("checkpoint_format", newer.c_str(), {"gptq", "gptq_v2"});
  config.zero_offset = format == "gptq" ? 1 : 0;
  keys.names("modules_to_not_convert", config.unquantized);
  return config;
}

QuantizationConfig parse_awq(const Keys& keys, const std::string& where) {
  QuantizationConfig config;
  config.method = Method::kAwq;
  keys.refuse_others({"bits", "group_size", "zero_point", "modules_to_not_convert"});
  config.bits = keys.one_of("bits", keys.fields().required_integer("bits"), {4});
  config.strategy = Strategy::kGroup;
  config.group_size = keys.group_size("group_size");
  config.symmetric = false;
  if (!keys.fields().boolean("zero_point").value_or(true)) {
    bad_input("{}: {}.zero_point false is not supported; use a model that has zero points", where, kKey);
  }
  std::string version = keys.fields().text("version").value_or("gemm");
  std::ranges::transform(version, version.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  if (version != "gemm") {
    bad_input("{}: {}.version {} of awq is not supported; use a model with gemm", where, kKey,
              printable(version));
  }
  keys.names("modules_to_not_convert", config.unquantized);
  return config;
}

/// Reads how the weights of a group of modules are stored.
QuantizationConfig parse_weights(const json& weights, const std::string& format, const std::string& where) {
  const bool floats = format == "float-quantized" || format == "naive-quantized";
  const Keys keys(weights, where, std::string(kKey) + " weights");
  keys.refuse_others({"num_bits", "type", "strategy", "symmetric", "group_size", "block_structure", "dynamic",
                      "actorder", "observer", "observer_kwargs", "scale_dtype", "zp_dtype"});
  QuantizationConfig config;
  config.method = floats ? Method::kFp8 : Method::kPacked;
  keys.refuse_set({"dynamic"});
  keys.one_of("type", "int", {floats ? "float" : "int"});
  const int bits = keys.fields().required_integer("num_bits");
  config.bits = floats ? keys.one_of("num_bits", bits, {8}) : keys.one_of("num_bits", bits, {4, 8});
  config.symmetric = keys.fields().boolean("symmetric").value_or(true);
  if (floats && !config.symmetric) bad_input("{}: {} weights.symmetric false is not supported", where, kKey);
  const bool grouped = keys.fields().find("group_size") != nullptr;
  const char* const usual = grouped ? "group" : "tensor";
  const std::string strategy = floats ? keys.one_of("strategy", usual, {"tensor", "channel", "block"})
                                      : keys.one_of("strategy", usual, {"channel", "group"});
  if (strategy == "block") {
    keys.blocks("block_structure", config);
  } else if (strategy == "group") {
    config.strategy = Strategy::kGroup;
    config.group_size = keys.group_size("group_size");
  } else {
    config.strategy = strategy == "channel" ? Strategy::kChannel : Strategy::kTensor;
  }
  if (keys.fields().find("actorder") != nullptr && keys.fields().find("actorder")->is_string()) {
    config.reordered = keys.one_of("actorder", "", {"group", "weight", "static"}) == "group";
  } else {
    keys.refuse_set({"actorder"});
  }
  return config;
}

QuantizationConfig parse_compressed_tensors(const Keys& keys, const std::string& where) {
  keys.refuse_set({"kv_cache_scheme", "transform_config"});
  keys.refuse_others(
      {"config_groups", "format", "ignore", "kv_cache_scheme", "sparsity_config", "transform_config"});
  if (const json* const sparsity = keys.fields().find("sparsity_config"); sparsity != nullptr) {
    const JsonFields fields(*sparsity, where, "sparsity_config");
    if (!sparsity->empty() && fields.text("format").value_or("dense") != "dense") {
      bad_input("{}: {}.sparsity_config is not supported; use a model without sparsity", where, kKey);
    }
  }
  const std::string format =
      keys.one_of("format", "", {"float-quantized", "naive-quantized", "pack-quantized"});
  const json* const groups = keys.fields().find("config_groups");
  if (groups == nullptr || !groups->is_object() || groups->empty()) {
    bad_input("{}: {}.config_groups should say how weights are stored", where, kKey);
  }
  const json* first = nullptr;
  for (const auto& item : groups->items()) {
    const Keys group(item.value(), where, std::string(kKey) + " group");
    group.refuse_others({"weights", "input_activations", "output_activations", "targets", "format"});
    group.refuse_set({"output_activations"});
    group.one_of("format", format.c_str(), {format});
    const json* const weights = group.fields().find("weights");
    if (weights == nullptr) bad_input("{}: a group of {} has no weights", where, kKey);
    if (first == nullptr) first = weights;
    if (*weights != *first) {
      bad_input("{}: the groups of {} store weights in different ways, which is not supported", where, kKey);
    }
  }
  QuantizationConfig config = parse_weights(*first, format, where);
  keys.names("ignore", config.unquantized);
  return config;
}

}  // namespace

QuantizationConfig parse_quantization_config(const json& value, const std::string& where) {
  const Keys keys(value, where, kKey);
  const std::string method = keys.fields().text("quant_method").value_or("");
  if (method == "fp8") return parse_fp8(keys);
  if (method == "gptq") return parse_gptq(keys);
  if (method == "awq") return parse_awq(keys, where);
  if (method == "compressed-tensors") return parse_compressed_tensors(keys, where);
  bad_input(
      "{}: {}.quant_method {} is not supported; use the original in F16 or BF16, or a model in fp8, gptq, "
      "awq "
      "or compressed-tensors",
      where, kKey, method.empty() ? "(none)" : printable(method));
}

}  // namespace verbatim
