#include "container/container_header.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/printable.h"
#include "container/config_json.h"

namespace verbatim {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr int kDeepest = 16;

constexpr std::pair<TokenizerSource::Kind, std::string_view> kTokenizerKinds[] = {
    {TokenizerSource::Kind::kNone, "none"},
    {TokenizerSource::Kind::kSentencePieceModel, "sentencepiece"},
    {TokenizerSource::Kind::kTokenizerJson, "json"},
    {TokenizerSource::Kind::kGguf, "gguf"}};

ordered_json plane_json(const StoredPlane& plane) {
  return {
      {"offset", plane.offset}, {"bytes", plane.bytes}, {"checksum", fmt::format("{:016x}", plane.checksum)}};
}

ordered_json store_json(const StoredFormat& store) {
  ordered_json planes = ordered_json::array();
  for (const StoredPlane& plane : store.planes) planes.push_back(plane_json(plane));
  ordered_json object = {{"format", format_name(store.format)},
                         {"element", store.element == Element::kF16 ? "F16" : "BF16"}};
  if (store.own) object["own"] = true;
  object["planes"] = std::move(planes);
  return object;
}

/// Reads one object of the header.
class Fields {
 public:
  Fields(const json& object, const std::string& where) : fields_(object, where) {}

  const json& any(const char* name) const {
    const json* const value = fields_.find(name);
    if (value == nullptr) bad_input("{}: the header lacks {}", fields_.where(), name);
    return *value;
  }
  uint64_t number(const char* name) const {
    const json& value = any(name);
    if (!value.is_number_unsigned()) {
      bad_input("{}: {} should be an integer from 0", fields_.where(), name);
    }
    return value.get<uint64_t>();
  }
  int64_t size(const char* name) const {
    const uint64_t value = number(name);
    if (value > INT64_MAX) bad_input("{}: the {} {} is too large", fields_.where(), name, value);
    return static_cast<int64_t>(value);
  }
  std::string text(const char* name) const {
    any(name);
    return *fields_.text(name);
  }
  const json& list(const char* name) const {
    const json& value = any(name);
    if (!value.is_array()) bad_input("{}: {} should be a list", fields_.where(), name);
    return value;
  }
  /// A boolean that may be absent, which means false.
  bool flag(const char* name) const { return fields_.boolean(name).value_or(false); }
  StoredPlane plane() const {
    return {.offset = number("offset"), .bytes = number("bytes"), .checksum = checksum()};
  }
  const std::string& where() const { return fields_.where(); }

 private:
  uint64_t checksum() const {
    const std::string digits = text("checksum");
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.size() != 16) {
      bad_input(
          "{}: the checksum \"{}\" should be 16 hexadecimal digits; the file is damaged, so pack it anew",
          fields_.where(), printable(digits));
    }
    return value;
  }

  JsonFields fields_;
};

StoredPlane plane_of(const Fields& fields, const char* name) {
  return Fields(fields.any(name), fields.where()).plane();
}

StoredFormat parse_store(const Fields& fields) {
  StoredFormat store;
  store.format = parse_format(printable(fields.text("format")), fields.where());
  const std::string element = fields.text("element");
  if (element != "BF16" && element != "F16") {
    bad_input("{}: the element {} is unknown", fields.where(), printable(element));
  }
  store.element = element == "F16" ? Element::kF16 : Element::kBf16;
  store.own = fields.flag("own");
  for (const json& plane : fields.list("planes")) {
    store.planes.push_back(Fields(plane, fields.where()).plane());
  }
  return store;
}

StoredMatrix parse_matrix(const Fields& fields) {
  StoredMatrix matrix;
  matrix.name = fields.text("name");
  matrix.columns = fields.size("columns");
  matrix.k = fields.size("k");
  for (const json& entry : fields.list("stores")) {
    StoredFormat store = parse_store(Fields(entry, fields.where()));
    if (matrix.find(store.format) != nullptr) {
      bad_input("{}: {} is there twice in {}", fields.where(), printable(matrix.name),
                format_name(store.format));
    }
    matrix.stores.push_back(std::move(store));
  }
  return matrix;
}

TokenizerSource::Kind parse_tokenizer_kind(const std::string& name, const std::string& where) {
  for (const auto& [kind, kind_name] : kTokenizerKinds) {
    if (kind_name == name) return kind;
  }
  bad_input("{}: the vocabulary's kind {} is unknown", where, printable(name));
}

DType parse_dtype(const std::string& name, const std::string& where) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype_name(dtype) == name) return dtype;
  }
  bad_input("{}: the type {} is unknown", where, printable(name));
}

}  // namespace

std::string header_json(const ContainerHeader& header) {
  ordered_json object;
  object["config"] = config_json(header.config);
  object["source"] = header.source;
  ordered_json& tokenizer = object["tokenizer"] = ordered_json::object();
  for (const auto& [kind, name] : kTokenizerKinds) {
    if (kind == header.tokenizer) tokenizer["kind"] = name;
  }
  tokenizer["files"] = ordered_json::array();
  for (const StoredFile& file : header.tokenizer_files) {
    tokenizer["files"].push_back({{"name", file.name}, {"plane", plane_json(file.plane)}});
  }
  object["embedding"] = {{"type", dtype_name(header.embedding_type)},
                         {"plane", plane_json(header.embedding)}};
  object["vectors"] = ordered_json::array();
  for (const StoredVector& vector : header.vectors) {
    object["vectors"].push_back(
        {{"name", vector.name}, {"length", vector.length}, {"plane", plane_json(vector.plane)}});
  }
  object["matrices"] = ordered_json::array();
  for (const StoredMatrix& matrix : header.matrices) {
    ordered_json stores = ordered_json::array();
    for (const StoredFormat& store : matrix.stores) stores.push_back(store_json(store));
    object["matrices"].push_back(
        {{"name", matrix.name}, {"columns", matrix.columns}, {"k", matrix.k}, {"stores", std::move(stores)}});
  }
  object["warnings"] = header.warnings;
  return object.dump();
}

ContainerHeader parse_header(std::string_view text, const std::string& where) {
  const json object = parse_json(text, kDeepest, where);
  const Fields fields(object, where);
  ContainerHeader header;
  header.config = parse_config(fields.any("config"), where);
  if (header.config.norms_less_one || header.config.fused_qkv || header.config.fused_gate_up) {
    bad_input(
        "{}: its config has norms_less_one, fused_qkv or fused_gate_up, but the weights of a packed file are "
        "in the engine's order; pack the model again",
        where);
  }
  header.source = fields.text("source");
  const Fields tokenizer(fields.any("tokenizer"), where);
  header.tokenizer = parse_tokenizer_kind(tokenizer.text("kind"), where);
  for (const json& entry : tokenizer.list("files")) {
    const Fields file(entry, where);
    header.tokenizer_files.push_back({file.text("name"), plane_of(file, "plane")});
  }
  const Fields embedding(fields.any("embedding"), where);
  header.embedding_type = parse_dtype(embedding.text("type"), where);
  header.embedding = plane_of(embedding, "plane");
  for (const json& entry : fields.list("vectors")) {
    const Fields vector(entry, where);
    header.vectors.push_back({vector.text("name"), vector.size("length"), plane_of(vector, "plane")});
  }
  for (const json& entry : fields.list("matrices")) {
    header.matrices.push_back(parse_matrix(Fields(entry, where)));
  }
  for (const json& warning : fields.list("warnings")) {
    if (!warning.is_string()) bad_input("{}: a warning should be a string", where);
    header.warnings.push_back(warning.get<std::string>());
  }
  return header;
}

}  // namespace verbatim
