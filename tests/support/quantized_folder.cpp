#include "support/quantized_folder.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "support/test_data.h"

namespace verbatim::test {

namespace {

using nlohmann::json;

/// The words of 32 bits of a table, packed along its first index: word w of column c holds the elements at
/// (w * count + order[i], c), i rising from the lowest bits on.
std::vector<std::vector<uint32_t>> packed(const std::vector<std::vector<int>>& table, int bits,
                                          const std::vector<int>& order) {
  const size_t count = 32 / static_cast<size_t>(bits);
  std::vector<std::vector<uint32_t>> words((table.size() + count - 1) / count);
  for (size_t w = 0; w < words.size(); ++w) {
    for (size_t c = 0; c < table.front().size(); ++c) {
      uint32_t word = 0;
      for (size_t i = 0; i < count; ++i) {
        const size_t row = w * count + static_cast<size_t>(order[i]);
        const uint32_t code = row < table.size() ? static_cast<uint32_t>(table[row][c]) : 0u;
        word |= code << (static_cast<int>(i) * bits);
      }
      words[w].push_back(word);
    }
  }
  return words;
}

template <typename T>
std::vector<std::vector<T>> transposed(const std::vector<std::vector<T>>& table) {
  std::vector<std::vector<T>> result(table.front().size());
  for (const std::vector<T>& row : table) {
    for (size_t c = 0; c < row.size(); ++c) result[c].push_back(row[c]);
  }
  return result;
}

StoredTensor words_tensor(const std::vector<std::vector<uint32_t>>& words) {
  StoredTensor tensor{"I32", {std::ssize(words), std::ssize(words.front())}, ""};
  for (const auto& row : words) {
    for (const uint32_t word : row) tensor.bytes += bytes_of(word);
  }
  return tensor;
}

DType dtype_of(const std::string& name) {
  return name == "F32" ? DType::kF32 : name == "F16" ? DType::kF16 : DType::kBF16;
}

class Quantizer {
 public:
  Quantizer(const Quantizing& how, QuantizedFolder& folder) : how_(how), folder_(folder) {}

  void quantize(const std::string& module, size_t rows, size_t columns) {
    if (how_.method == "fp8" || how_.method == "float-quantized") return float8(module, rows, columns);
    integers(module, rows, columns);
  }

 private:
  int draw(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }

  /// A scale that the type of scales holds.
  float draw_scale(float size) {
    if (how_.powers_of_two) return std::ldexp(1.0f, draw(4) - 8);
    const float scale = size * (1.0f + static_cast<float>(draw(1 << 20)) / (1 << 20));
    if (how_.scale_type == "F16") return to_float(to_float16(scale));
    return how_.scale_type == "BF16" ? to_float(to_bfloat16(scale)) : scale;
  }

  StoredTensor scale_tensor(const std::vector<std::vector<float>>& scales, std::vector<int64_t> shape) const {
    std::vector<float> all;
    for (const auto& row : scales) all.insert(all.end(), row.begin(), row.end());
    return {how_.scale_type, std::move(shape), encode(dtype_of(how_.scale_type), all)};
  }

  void float8(const std::string& module, size_t rows, size_t columns) {
    const auto block_rows = static_cast<size_t>(how_.strategy == "block"     ? how_.block_rows
                                                : how_.strategy == "channel" ? 1
                                                                             : static_cast<int>(rows));
    const size_t block_columns = how_.strategy == "block" ? static_cast<size_t>(how_.block_columns) : columns;
    std::vector<std::vector<float>> scales((rows + block_rows - 1) / block_rows);
    for (auto& row : scales) {
      for (size_t b = 0; b < (columns + block_columns - 1) / block_columns; ++b) {
        row.push_back(draw_scale(0.0004f));
      }
    }
    std::string codes;
    std::vector<float>& expected = folder_.expected[module + ".weight"];
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) {
        auto bits = static_cast<uint8_t>(draw(256));
        while (!std::isfinite(float8_value(how_.number, bits)) ||
               std::abs(float8_value(how_.number, bits)) > 448) {
          bits = static_cast<uint8_t>(draw(256));
        }
        codes += static_cast<char>(bits);
        expected.push_back(static_cast<float>(float8_value(how_.number, bits) *
                                              double{scales[r / block_rows][c / block_columns]}));
      }
    }
    const auto scale_rows = std::ssize(scales);
    const auto scale_columns = std::ssize(scales.front());
    folder_.tensors[module + ".weight"] = {
        how_.number, {static_cast<int64_t>(rows), static_cast<int64_t>(columns)}, codes};
    const std::string end = how_.method == "fp8" && how_.strategy == "block" ? "_inv" : "";
    folder_.tensors[module + ".weight_scale" + end] =
        scale_tensor(scales, how_.strategy == "tensor" ? std::vector<int64_t>{1}
                                                       : std::vector<int64_t>{scale_rows, scale_columns});
  }

  void integers(const std::string& module, size_t rows, size_t columns) {
    const size_t group = how_.group_size < 0 ? columns : static_cast<size_t>(how_.group_size);
    const size_t groups = columns / group;
    const int range = 1 << how_.bits;
    std::vector<uint32_t> group_of(columns);
    for (size_t c = 0; c < columns; ++c) {
      group_of[c] = static_cast<uint32_t>(how_.reordered ? c * 7 % columns / group : c / group);
    }
    std::vector<std::vector<int>> codes(rows);
    std::vector<std::vector<int>> zeros(rows);
    std::vector<std::vector<float>> scales(rows);
    std::vector<float>& expected = folder_.expected[module + ".weight"];
    for (size_t r = 0; r < rows; ++r) {
      for (size_t g = 0; g < groups; ++g) {
        zeros[r].push_back(how_.symmetric ? range / 2 : draw(range));
        scales[r].push_back(draw_scale(0.2f / static_cast<float>(range)));
      }
      for (size_t c = 0; c < columns; ++c) {
        codes[r].push_back(draw(range));
        expected.push_back(
            static_cast<float>(double{scales[r][group_of[c]]} * (codes[r][c] - zeros[r][group_of[c]])));
      }
    }
    std::string index;
    for (const uint32_t g : group_of) index += bytes_of(g);
    const StoredTensor index_tensor{"I32", {static_cast<int64_t>(columns)}, index};
    const std::vector<int> in_order = {0, 1, 2, 3, 4, 5, 6, 7};
    const auto count_rows = static_cast<int64_t>(rows);
    const auto count_columns = static_cast<int64_t>(columns);
    const auto count_groups = static_cast<int64_t>(groups);
    if (how_.method == "pack-quantized") {
      folder_.tensors[module + ".weight_packed"] =
          words_tensor(transposed(packed(transposed(codes), how_.bits, in_order)));
      folder_.tensors[module + ".weight_shape"] = {
          "I64", {2}, bytes_of(count_rows) + bytes_of(count_columns)};
      folder_.tensors[module + ".weight_scale"] = scale_tensor(scales, {count_rows, count_groups});
      if (!how_.symmetric) {
        folder_.tensors[module + ".weight_zero_point"] = words_tensor(packed(zeros, how_.bits, in_order));
      }
      if (how_.reordered) folder_.tensors[module + ".weight_g_idx"] = index_tensor;
      return;
    }
    folder_.tensors[module + ".scales"] = scale_tensor(transposed(scales), {count_groups, count_rows});
    if (how_.method == "awq") {
      const std::vector<int> order = {0, 2, 4, 6, 1, 3, 5, 7};
      folder_.tensors[module + ".qweight"] = words_tensor(transposed(packed(codes, 4, order)));
      folder_.tensors[module + ".qzeros"] = words_tensor(transposed(packed(zeros, 4, order)));
      return;
    }
    for (auto& row : zeros) {  // the first version stores one less
      for (int& zero : row) zero = how_.version == 1 ? (zero + range - 1) % range : zero;
    }
    folder_.tensors[module + ".qweight"] = words_tensor(packed(transposed(codes), how_.bits, in_order));
    folder_.tensors[module + ".qzeros"] = words_tensor(transposed(packed(zeros, how_.bits, in_order)));
    folder_.tensors[module + ".g_idx"] = index_tensor;
  }

  const Quantizing& how_;
  QuantizedFolder& folder_;
  std::mt19937 random_{7};
};

json quantization_config(const Quantizing& how) {
  const json blocks = {how.block_rows, how.block_columns};
  if (how.method == "fp8") {
    json config = {{"quant_method", "fp8"}, {"fmt", "e4m3"}, {"activation_scheme", "dynamic"}};
    if (how.strategy == "block") config["weight_block_size"] = blocks;
    return config;
  }
  if (how.method == "gptq") {
    return {{"quant_method", "gptq"},       {"bits", how.bits},
            {"group_size", how.group_size}, {"sym", how.symmetric},
            {"desc_act", how.reordered},    {"checkpoint_format", how.version == 1 ? "gptq" : "gptq_v2"}};
  }
  if (how.method == "awq") {
    return {{"quant_method", "awq"},
            {"bits", 4},
            {"group_size", how.group_size},
            {"zero_point", true},
            {"version", "gemm"}};
  }
  const bool floats = how.method == "float-quantized";
  json weights = {{"num_bits", how.bits}, {"type", floats ? "float" : "int"}, {"symmetric", how.symmetric}};
  weights["strategy"] = floats ? how.strategy : how.group_size < 0 ? "channel" : "group";
  if (floats && how.strategy == "block") weights["block_structure"] = blocks;
  if (!floats && how.group_size > 0) weights["group_size"] = how.group_size;
  if (how.reordered) weights["actorder"] = "group";
  return {{"quant_method", "compressed-tensors"},
          {"format", how.method},
          {"config_groups", {{"group_0", {{"weights", weights}, {"targets", {"Linear"}}}}}},
          {"ignore", {"lm_head"}}};
}

}  // namespace

double float8_value(const std::string& type, uint8_t bits) {
  const int fraction_bits = type == "F8_E4M3" ? 3 : 2;
  const int exponent = (bits & 127) >> fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int bias = type == "F8_E4M3" ? 7 : 15;
  const double sign = bits > 127 ? -1.0 : 1.0;
  if (type == "F8_E4M3" && (bits & 127) == 127) return std::numeric_limits<double>::quiet_NaN();
  if (type == "F8_E5M2" && exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  const double within = static_cast<double>(fraction) / (1 << fraction_bits);
  if (exponent == 0) return sign * within * std::pow(2.0, 1 - bias);
  return sign * (1.0 + within) * std::pow(2.0, exponent - bias);
}

QuantizedFolder quantized_folder(const Quantizing& quantizing, const TinyModelOptions& options) {
  QuantizedFolder folder;
  folder.options = options;
  folder.quantization = quantization_config(quantizing);
  Quantizer quantizer(quantizing, folder);
  for (const NamedTensor& tensor : tiny_tensors(options)) {
    if (tensor.name.ends_with("_proj.weight")) {
      quantizer.quantize(tensor.name.substr(0, tensor.name.size() - 7), static_cast<size_t>(tensor.shape[0]),
                         static_cast<size_t>(tensor.shape[1]));
    } else {
      folder.tensors[tensor.name] = {"BF16", tensor.shape, encode(DType::kBF16, tensor.values)};
    }
  }
  return folder;
}

void QuantizedFolder::write(const std::filesystem::path& folder) const {
  std::filesystem::create_directories(folder);
  json config = json::parse(tiny_config_text(options));
  config["quantization_config"] = quantization;
  std::ofstream(folder / "config.json") << config;
  json header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  std::ofstream(folder / "model.safetensors", std::ios::binary) << safetensors_file(header.dump(), data);
}

}  // namespace verbatim::test
