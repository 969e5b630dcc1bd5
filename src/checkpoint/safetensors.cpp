#include "checkpoint/safetensors.h"

#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/printable.h"
#include "checkpoint/layout.h"

namespace verbatim {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr uint64_t kLongestHeader = 100'000'000;
constexpr size_t kMostDimensions = 8;
constexpr int kDeepestHeader = 8;

/// Whether a tensor is a mask or a rotation table, which the architecture determines. Such tensors often have
/// types that no weight has.
bool is_derived_buffer(std::string_view name) {
  for (const std::string_view suffix : {".rotary_emb.inv_freq", ".masked_bias", ".attn.bias"}) {
    if (name.ends_with(suffix)) return true;
  }
  return false;
}

/// Whether a tensor belongs to a quantized matrix and holds codes, zero points or an order of inputs.
bool is_quantizer_part(std::string_view name) {
  for (const std::string_view suffix : {".qweight", ".qzeros", ".g_idx", ".weight_packed", ".weight_shape",
                                        ".weight_zero_point", ".weight_g_idx"}) {
    if (name.ends_with(suffix)) return true;
  }
  return false;
}

std::string_view read_header(std::span<const std::byte> bytes, const std::string& where) {
  uint64_t length = 0;
  if (bytes.size() < sizeof(length))
    bad_input("{}: too short for a safetensors file; it is truncated", where);
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kLongestHeader) {
    bad_input(
        "{}: claims a header of {} bytes, but at most {} are possible; it is no safetensors file or damaged",
        where, length, kLongestHeader);
  }
  if (length > bytes.size() - sizeof(length)) {
    bad_input("{}: the header of {} bytes does not fit into the file; it is truncated", where, length);
  }
  return {reinterpret_cast<const char*>(bytes.data() + sizeof(length)), length};
}

DType parse_dtype(const json& value, const std::string& name, const std::string& where) {
  if (!value.is_string()) bad_input("{}: the dtype of tensor {} should be a string", where, printable(name));
  const auto& text = value.get_ref<const std::string&>();
  if (text == "F32") return DType::kF32;
  if (text == "F16") return DType::kF16;
  if (text == "BF16") return DType::kBF16;
  // Codes and scales of MXFP4.
  if (text == "U8" && (name.ends_with("_blocks") || name.ends_with("_scales"))) return DType::kU8;
  if (name.ends_with(".weight")) {
    if (text == "F8_E4M3") return DType::kF8E4M3;
    if (text == "F8_E5M2") return DType::kF8E5M2;
  }
  if (text == "I32" && is_quantizer_part(name)) return DType::kI32;
  if (text == "I64" && name.ends_with(".weight_shape")) return DType::kI64;
  bad_input(
      "{}: tensor {} has the dtype {}; F32, F16 and BF16 are supported, so convert the model to one of these",
      where, printable(name), printable(text));
}

std::vector<int64_t> parse_naturals(const json& value, const char* what, const std::string& name,
                                    const std::string& where) {
  if (!value.is_array()) bad_input("{}: the {} of tensor {} should be a list", where, what, printable(name));
  std::vector<int64_t> result;
  for (const json& element : value) {
    constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
    if (!element.is_number_unsigned() || element.get<uint64_t>() > kLargest) {
      bad_input("{}: the {} of tensor {} should hold natural numbers", where, what, printable(name));
    }
    result.push_back(element.get<int64_t>());
  }
  return result;
}

struct StoredTensor {
  TensorView view;
  Extent extent;
};

StoredTensor parse_tensor(const std::string& name, const json& value, std::span<const std::byte> data,
                          const std::string& where) {
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets")) {
    bad_input("{}: tensor {} lacks its dtype, shape or data_offsets; the file is damaged", where,
              printable(name));
  }
  StoredTensor result;
  TensorView& view = result.view;
  view.dtype = parse_dtype(value["dtype"], name, where);
  view.shape = parse_naturals(value["shape"], "shape", name, where);
  if (view.shape.size() > kMostDimensions) {
    bad_input("{}: tensor {} has {} dimensions", where, printable(name), view.shape.size());
  }
  const std::vector<int64_t> offsets = parse_naturals(value["data_offsets"], "data_offsets", name, where);
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    bad_input("{}: the data_offsets of tensor {} are no range", where, printable(name));
  }
  const auto begin = static_cast<uint64_t>(offsets[0]);
  const auto end = static_cast<uint64_t>(offsets[1]);
  if (end > data.size()) {
    bad_input("{}: tensor {} lies at bytes {} to {} of {}; the file is truncated or damaged", where,
              printable(name), begin, end, data.size());
  }
  if (stored_bytes(view.dtype, view.shape) != end - begin) {
    bad_input("{}: tensor {} has {} bytes, which is not what the shape {} takes as {}", where,
              printable(name), end - begin, shape_text(view.shape), dtype_name(view.dtype));
  }
  view.data = data.subspan(begin, end - begin);
  result.extent = {begin, end, name};
  return result;
}

json read_json_file(const fs::path& path) {
  const MemoryMap file(path, kLongestHeader);
  const auto bytes = file.bytes();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kDeepestHeader,
                    path.string());
}

/// Checks that a shard lies in the folder of its model.
void check_shard_name(const std::string& name, const std::string& where) {
  const fs::path path(name);
  bool inside = !name.empty() && path.is_relative() && name.find('\0') == std::string::npos;
  for (const fs::path& part : path) inside = inside && part != "..";
  if (!inside) bad_input("{}: the shard {} is outside the model's folder", where, printable(name));
}

SafetensorsModel open_shards(const fs::path& index_path) {
  const std::string where = index_path.string();
  const json index = read_json_file(index_path);
  const json* weight_map = JsonFields(index, where).find("weight_map");
  if (weight_map == nullptr || !weight_map->is_object()) bad_input("{}: weight_map is missing", where);

  SafetensorsModel model;
  std::map<std::string, std::map<std::string, TensorView>> shards;
  for (const auto& item : weight_map->items()) {
    const std::string& name = item.key();
    if (is_derived_buffer(name)) continue;
    if (!item.value().is_string())
      bad_input("{}: the shard of {} should be a file name", where, printable(name));
    const auto& shard_name = item.value().get_ref<const std::string&>();
    auto shard = shards.find(shard_name);
    if (shard == shards.end()) {
      check_shard_name(shard_name, where);
      const fs::path path = index_path.parent_path() / shard_name;
      model.files.push_back(std::make_shared<const MemoryMap>(path));
      shard = shards.emplace(shard_name, parse_safetensors(model.files.back()->bytes(), path.string())).first;
    }
    const auto tensor = shard->second.find(name);
    if (tensor == shard->second.end()) {
      bad_input("{}: tensor {} should be in {}, but is not; the download is incomplete or mixed", where,
                printable(name), printable(shard_name));
    }
    model.tensors.emplace(name, tensor->second);
  }
  return model;
}

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

}  // namespace

std::map<std::string, TensorView> parse_safetensors(std::span<const std::byte> bytes,
                                                    const std::string& where) {
  const std::string_view header = read_header(bytes, where);
  const json entries = parse_json(header, kDeepestHeader, where);
  if (!entries.is_object()) bad_input("{}: the header is no JSON object; the file is damaged", where);
  const std::span<const std::byte> data = bytes.subspan(sizeof(uint64_t) + header.size());

  std::map<std::string, TensorView> tensors;
  std::vector<Extent> extents;
  for (const auto& item : entries.items()) {
    if (item.key() == "__metadata__" || is_derived_buffer(item.key())) continue;
    StoredTensor tensor = parse_tensor(item.key(), item.value(), data, where);
    extents.push_back(std::move(tensor.extent));
    tensors.emplace(item.key(), std::move(tensor.view));
  }
  check_no_overlap(std::move(extents), where);
  return tensors;
}

std::map<std::string, std::string> safetensors_metadata(std::span<const std::byte> bytes,
                                                        const std::string& where) {
  std::map<std::string, std::string> metadata;
  const json entries = parse_json(read_header(bytes, where), kDeepestHeader, where);
  if (!entries.is_object() || !entries.contains("__metadata__")) return metadata;
  for (const auto& item : entries["__metadata__"].items()) {
    if (item.value().is_string()) metadata.emplace(item.key(), item.value().get<std::string>());
  }
  return metadata;
}

bool has_safetensors(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kSingleFile, ignored) || fs::exists(folder / kIndexFile, ignored);
}

SafetensorsModel open_safetensors(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / kSingleFile, ignored)) return open_shards(folder / kIndexFile);
  SafetensorsModel model;
  model.files.push_back(std::make_shared<const MemoryMap>(folder / kSingleFile));
  model.tensors = parse_safetensors(model.files.back()->bytes(), (folder / kSingleFile).string());
  return model;
}

}  // namespace verbatim
