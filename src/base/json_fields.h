#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace verbatim {

/// Parses untrusted JSON. Throws Error(kBadInput), naming `where`, if the text is not JSON, nests deeper than
/// `deepest`, has a key twice in one object, or holds a number beyond the range of a double.
nlohmann::json parse_json(std::string_view text, int deepest, const std::string& where);

/// Typed access to the fields of an object. A field that is absent or null gives nothing; one of another type
/// throws Error(kBadInput) naming `where` and the key.
class JsonFields {
 public:
  /// `object` and `where` must outlive the JsonFields. `inside` is the key in the file whose value `object`
  /// is; empty for the whole file. Throws Error(kBadInput) unless `object` is an object.
  JsonFields(const nlohmann::json& object, const std::string& where, std::string inside = "");

  /// Whether the field is there; it may be null.
  bool has(const char* key) const { return object_.contains(key); }
  /// The value of a field; nullptr if the field is absent or null.
  const nlohmann::json* find(const char* key) const;
  std::optional<int32_t> integer(const char* key) const;
  std::optional<float> number(const char* key) const;
  std::optional<bool> boolean(const char* key) const;
  std::optional<std::string> text(const char* key) const;

  // The required_... functions throw Error(kBadInput) also if the field is absent or null.
  int32_t required_integer(const char* key) const;
  float required_number(const char* key) const;

  const std::string& where() const { return where_; }

 private:
  /// The key as messages name it.
  std::string full_name(const char* key) const;

  const nlohmann::json& object_;
  const std::string& where_;
  std::string inside_;
};

/// A value as an integer; nothing if it is not an integer or is out of range. A float without a fraction
/// counts as an integer.
std::optional<int32_t> as_int32(const nlohmann::json& value);

}  // namespace verbatim
