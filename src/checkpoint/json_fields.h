#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace verbatim {

/// Parses untrusted JSON. Throws Error(kBadInput), naming `where`, for anything that is not JSON, that nests
/// deeper than `deepest`, that has a key twice in one object, or that holds a number beyond what a double
/// can.
nlohmann::json parse_json(std::string_view text, int deepest, const std::string& where);

/// Typed access to the fields of an object. A field that is absent or null gives nothing; one of another type
/// throws Error(kBadInput) naming `where` and the key.
class JsonFields {
 public:
  /// The object and `where` must outlive this. `inside` is the key in a file that the object is the value of,
  /// if it is not the whole of it. Throws Error(kBadInput) unless `object` is an object.
  JsonFields(const nlohmann::json& object, const std::string& where, std::string inside = "");

  /// Whether the field is there, be it null.
  bool has(const char* key) const { return object_.contains(key); }
  /// nullptr when absent or null.
  const nlohmann::json* find(const char* key) const;
  std::optional<int32_t> integer(const char* key) const;
  std::optional<float> number(const char* key) const;
  std::optional<bool> boolean(const char* key) const;
  std::optional<std::string> text(const char* key) const;

  // These throw Error(kBadInput) when the field is absent or null, too.
  int32_t required_integer(const char* key) const;
  float required_number(const char* key) const;

  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& object_;
  /// The key as messages name it.
  std::string full_name(const char* key) const;

  const std::string& where_;
  std::string inside_;
};

/// The value as an integer; nothing when it is none or out of range. A float without a fraction counts as
/// one.
std::optional<int32_t> as_int32(const nlohmann::json& value);

}  // namespace verbatim
