#include "checkpoint/quantized_tensors.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/matrix.h"
#include "base/printable.h"
#include "checkpoint/layout.h"
#include "checkpoint/scaled_codes.h"

namespace verbatim {

namespace {

using Method = QuantizationConfig::Method;
using Strategy = QuantizationConfig::Strategy;

bool is_float8(DType dtype) {
  return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
}

/// Makes one matrix of the tensors of a module.
class Joiner {
 public:
  Joiner(Checkpoint& checkpoint, const QuantizationConfig& config)
      : checkpoint_(checkpoint), config_(config) {}

  void join(const std::string& module) {
    module_ = module;
    if (std::ranges::any_of(config_.unquantized, [&](const std::string& name) { return covers(name); })) {
      refuse(module, "is quantized, but config.json says that it is not");
    }
    if (module.ends_with("embed_tokens"))
      refuse(module, "is quantized, which is not supported of embeddings");
    if (module == "lm_head" && checkpoint_.config.tied_embeddings) {
      refuse(module,
             "is quantized, but tie_word_embeddings in config.json says that the embedding takes its place: "
             "set that to false, or remove the tensors of lm_head");
    }
    ScaledCodes matrix;
    TensorView view;
    if (config_.method == Method::kFp8) view.dtype = join_float8(matrix);
    if (config_.method == Method::kGptq || config_.method == Method::kAwq) view.dtype = join_words(matrix);
    if (config_.method == Method::kPacked) view.dtype = join_packed(matrix);
    if (!matrix.examine()) refuse(scale_name_, "has scales that are NaN or infinite; the file is damaged");
    view.shape = {matrix.rows, matrix.columns};
    view.data = matrix.codes;
    view.scaled = std::make_shared<const ScaledCodes>(std::move(matrix));
    const std::string name = module + ".weight";
    if (checkpoint_.has(name)) refuse(name, "is there beside the codes of the same matrix");
    checkpoint_.tensors.emplace(name, std::move(view));
  }

 private:
  [[noreturn]] void refuse(const std::string& tensor, const std::string& problem) const {
    bad_input("{}: tensor {} {}", checkpoint_.path.string(), printable(tensor), problem);
  }

  /// Whether a name in a list of modules means this one, as its own, its parent's or its last name.
  bool covers(const std::string& name) const {
    if (name.empty() || name.starts_with("re:")) return false;
    return module_ == name || module_.starts_with(name + ".") || module_.ends_with("." + name);
  }

  /// Takes a tensor of the module out of the checkpoint.
  TensorView take(const std::string& end, std::initializer_list<DType> types) {
    const std::string name = module_ + end;
    const auto found = checkpoint_.tensors.find(name);
    if (found == checkpoint_.tensors.end()) refuse(name, "is missing; the model is incomplete");
    TensorView tensor = found->second;
    if (std::ranges::find(types, tensor.dtype) == types.end()) {
      refuse(name, fmt::format("has the type {}, which it should not have", dtype_name(tensor.dtype)));
    }
    checkpoint_.tensors.erase(found);
    return tensor;
  }

  bool has(const std::string& end) const { return checkpoint_.has(module_ + end); }

  void require_shape(const std::string& end, const TensorView& tensor,
                     const std::vector<int64_t>& shape) const {
    if (tensor.shape == shape) return;
    refuse(module_ + end,
           fmt::format("has the shape {} but should have {}", shape_text(tensor.shape), shape_text(shape)));
  }

  void require_matrix(const std::string& end, const TensorView& tensor) const {
    if (tensor.shape.size() == 2 && tensor.shape[0] > 0 && tensor.shape[1] > 0) return;
    refuse(module_ + end, fmt::format("has the shape {} but should be a matrix", shape_text(tensor.shape)));
  }

  TensorView take_scales(const std::string& end) {
    scale_name_ = module_ + end;
    return take(end, {DType::kF32, DType::kF16, DType::kBF16});
  }

  DType join_float8(ScaledCodes& matrix) {
    const TensorView codes = take(".weight", {DType::kF8E4M3, DType::kF8E5M2});
    require_matrix(".weight", codes);
    matrix.layout = codes.dtype == DType::kF8E4M3 ? CodeLayout::kFloat8E4M3 : CodeLayout::kFloat8E5M2;
    matrix.codes = codes.data;
    matrix.rows = codes.shape[0];
    matrix.columns = codes.shape[1];
    const std::string end = has(".weight_scale_inv") ? ".weight_scale_inv" : ".weight_scale";
    matrix.scales = take_scales(end);
    for (const char* const of_activations :
         {".input_scale", ".activation_scale"}) {  // which stay as they are
      checkpoint_.tensors.erase(module_ + of_activations);
    }
    matrix.group_size = matrix.columns;
    if (config_.strategy == Strategy::kTensor) {
      if (!matrix.scales.shape.empty()) require_shape(end, matrix.scales, {1});
      matrix.rows_per_scale = matrix.rows;
    } else if (config_.strategy == Strategy::kChannel) {
      require_shape(end, matrix.scales, {matrix.rows, 1});
      matrix.row_stride = 1;
    } else {
      matrix.rows_per_scale = config_.block_rows;
      matrix.group_size = config_.block_columns;
      matrix.groups = ceil_div(matrix.columns, matrix.group_size);
      require_shape(end, matrix.scales, {ceil_div(matrix.rows, config_.block_rows), matrix.groups});
      matrix.row_stride = matrix.groups;
      matrix.group_stride = 1;
    }
    return codes.dtype;
  }

  /// The groups of the inputs of a matrix of integers.
  void set_groups(ScaledCodes& matrix, const std::string& codes_end) const {
    matrix.group_size = config_.group_size == 0 ? matrix.columns : config_.group_size;
    if (matrix.columns % matrix.group_size != 0) {
      refuse(module_ + codes_end, fmt::format("has {} inputs, which is no multiple of the group_size {}",
                                              matrix.columns, matrix.group_size));
    }
    matrix.groups = matrix.columns / matrix.group_size;
  }

  void take_group_index(ScaledCodes& matrix, const std::string& end) {
    if (!config_.reordered && !has(end)) return;
    const TensorView index = take(end, {DType::kI32});
    require_shape(end, index, {matrix.columns});
    matrix.group_index = index.data;
    // Nothing but -1 is written where nothing was reordered.
    const auto unset = [](std::byte value) { return value == std::byte{0xff}; };
    if (config_.method == Method::kPacked && std::ranges::all_of(index.data, unset)) {
      matrix.group_index = {};
      return;
    }
    for (int64_t c = 0; c < matrix.columns; ++c) {
      const int64_t group = matrix.group(c);
      if (group < 0 || group >= matrix.groups) {
        refuse(module_ + end,
               fmt::format("names the group {} of {}; the file is damaged", group, matrix.groups));
      }
    }
  }

  /// Refuses zero points other than the middle in a model that config.json calls symmetric: one of the two is
  /// wrong.
  void require_middle(const ScaledCodes& matrix, const std::string& end) const {
    for (int64_t g = 0; g < matrix.groups; ++g) {
      for (int64_t r = 0; r < matrix.rows; ++r) {
        const int32_t zero = matrix.zero(r, g);
        if (zero == 1 << (matrix.bits - 1)) continue;
        refuse(
            module_ + end,
            fmt::format("has a zero point {} where config.json says sym true; its checkpoint_format, gptq or "
                        "gptq_v2, may be the wrong one",
                        zero));
      }
    }
  }

  /// Drops a bias of zeros that quantizers write where the family has none.
  void drop_zero_bias() {
    const auto bias = checkpoint_.tensors.find(module_ + ".bias");
    if (bias == checkpoint_.tensors.end()) return;
    const ModelConfig& model = checkpoint_.config;
    const bool qkv = std::ranges::any_of(std::initializer_list<const char*>{".q_proj", ".k_proj", ".v_proj"},
                                         [&](const char* end) { return module_.ends_with(end); });
    if ((model.qkv_bias && qkv) || (model.output_bias && module_.ends_with(".o_proj"))) return;
    const auto zero = [](std::byte value) { return value == std::byte{0}; };
    if (std::ranges::all_of(bias->second.data, zero)) checkpoint_.tensors.erase(bias);
  }

  /// GPTQ and AWQ, whose tensors have a row for each input.
  DType join_words(ScaledCodes& matrix) {
    const bool awq = config_.method == Method::kAwq;
    const TensorView codes = take(".qweight", {DType::kI32});
    require_matrix(".qweight", codes);
    const int64_t per_word = 32 / config_.bits;
    matrix.layout = awq ? CodeLayout::kAwq : CodeLayout::kGptq;
    matrix.bits = config_.bits;
    matrix.codes = codes.data;
    matrix.columns = codes.shape[0] * (awq ? 1 : per_word);
    matrix.rows = codes.shape[1] * (awq ? per_word : 1);
    set_groups(matrix, ".qweight");
    if (matrix.rows % per_word != 0) {
      refuse(module_ + ".qweight",
             fmt::format("has {} outputs, which is no multiple of {}", matrix.rows, per_word));
    }
    matrix.scales = take_scales(".scales");
    require_shape(".scales", matrix.scales, {matrix.groups, matrix.rows});
    matrix.row_stride = 1;
    matrix.group_stride = matrix.rows;
    const TensorView zeros = take(".qzeros", {DType::kI32});
    require_shape(".qzeros", zeros, {matrix.groups, matrix.rows / per_word});
    matrix.zeros = zeros.data;
    matrix.zero_offset = config_.zero_offset;
    if (!awq) take_group_index(matrix, ".g_idx");
    drop_zero_bias();
    if (config_.symmetric) require_middle(matrix, ".qzeros");
    return awq ? DType::kAwq4 : config_.bits == 4 ? DType::kGptq4 : DType::kGptq8;
  }

  DType join_packed(ScaledCodes& matrix) {
    const TensorView codes = take(".weight_packed", {DType::kI32});
    require_matrix(".weight_packed", codes);
    const TensorView shape = take(".weight_shape", {DType::kI32, DType::kI64});
    require_shape(".weight_shape", shape, {2});
    int64_t sizes[2] = {};
    for (int i = 0; i < 2; ++i) {
      if (shape.dtype == DType::kI64) {
        std::memcpy(&sizes[i], shape.data.data() + i * 8, 8);
      } else {
        int32_t size = 0;
        std::memcpy(&size, shape.data.data() + i * 4, 4);
        sizes[i] = size;
      }
    }
    const int64_t per_word = 32 / config_.bits;
    matrix.layout = CodeLayout::kPacked;
    matrix.bits = config_.bits;
    matrix.codes = codes.data;
    matrix.rows = codes.shape[0];
    matrix.columns = sizes[1];
    const int64_t most = codes.shape[1] * per_word;
    if (sizes[0] != matrix.rows || sizes[1] > most || sizes[1] <= most - per_word) {
      refuse(module_ + ".weight_shape", fmt::format("says [{}, {}], which {} words of codes do not hold",
                                                    sizes[0], sizes[1], shape_text(codes.shape)));
    }
    set_groups(matrix, ".weight_packed");
    matrix.scales = take_scales(".weight_scale");
    require_shape(".weight_scale", matrix.scales, {matrix.rows, matrix.groups});
    matrix.row_stride = matrix.groups;
    matrix.group_stride = 1;
    if (!config_.symmetric) {
      const TensorView zeros = take(".weight_zero_point", {DType::kI32});
      require_shape(".weight_zero_point", zeros, {ceil_div(matrix.rows, per_word), matrix.groups});
      matrix.zeros = zeros.data;
    }
    take_group_index(matrix, ".weight_g_idx");
    return config_.bits == 4 ? DType::kPacked4 : DType::kPacked8;
  }

  Checkpoint& checkpoint_;
  const QuantizationConfig& config_;
  std::string module_;
  std::string scale_name_;
};

}  // namespace

void join_quantized_tensors(Checkpoint& checkpoint, const QuantizationConfig& config) {
  const std::string end = config.method == Method::kFp8      ? ".weight"
                          : config.method == Method::kPacked ? ".weight_packed"
                                                             : ".qweight";
  std::vector<std::string> modules;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (!name.ends_with(end) || (config.method == Method::kFp8 && !is_float8(tensor.dtype))) continue;
    modules.push_back(name.substr(0, name.size() - end.size()));
  }
  if (modules.empty()) {
    bad_input("{}: config.json has a quantization_config, but no tensor is quantized as it says",
              checkpoint.path.string());
  }
  Joiner joiner(checkpoint, config);
  for (const std::string& module : modules) joiner.join(module);
}

void refuse_unexplained_types(const Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const bool raw = is_float8(tensor.dtype) || tensor.dtype == DType::kI32 || tensor.dtype == DType::kI64;
    if (!raw || tensor.scaled != nullptr) continue;
    bad_input("{}: tensor {} has the type {}, which the quantization_config of config.json does not explain",
              checkpoint.path.string(), printable(name), dtype_name(tensor.dtype));
  }
}

}  // namespace verbatim
