#include "base/json_fields.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/printable.h"

namespace verbatim {

using nlohmann::json;

namespace {

/// Limits the depth of nesting while the parser runs. The parser itself does not recurse, but users of its
/// result do.
class Watcher {
 public:
  Watcher(int deepest, const std::string& where) : deepest_(static_cast<size_t>(deepest)), where_(where) {}

  void on_event(json::parse_event_t event, const json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (open_.size() >= deepest_) bad_input("{}: the JSON nests deeper than {} levels", where_, deepest_);
        open_.emplace_back();
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        open_.pop_back();
        break;
      case json::parse_event_t::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!open_.back().insert(key).second)
          bad_input("{}: the key {} is there twice", where_, printable(key));
        break;
      }
      case json::parse_event_t::value:
        break;
    }
  }

 private:
  size_t deepest_;
  const std::string& where_;
  std::vector<std::set<std::string>> open_;  // the keys so far of every open object; empty for arrays
};

[[noreturn]] void wrong_type(const std::string& where, const std::string& key, const char* expected) {
  bad_input("{}: {} should be {}", where, key, expected);
}

}  // namespace

json parse_json(std::string_view text, int deepest, const std::string& where) {
  Watcher watcher(deepest, where);
  const auto on_event = [&watcher](int, json::parse_event_t event, json& parsed) {
    watcher.on_event(event, parsed);
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), on_event);
  } catch (const json::parse_error& error) {
    bad_input("{}: not valid JSON at byte {}; the file is damaged", where, error.byte);
  } catch (const json::exception&) {
    bad_input("{}: the JSON holds a number that is too large", where);
  }
}

JsonFields::JsonFields(const json& object, const std::string& where, std::string inside)
    : object_(object), where_(where), inside_(std::move(inside)) {
  if (object.is_object()) return;
  bad_input("{}: {} should be a JSON object, but is a JSON {}", where,
            inside_.empty() ? "the whole" : inside_, object.type_name());
}

std::string JsonFields::full_name(const char* key) const {
  return inside_.empty() ? key : inside_ + "." + key;
}

const json* JsonFields::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<int32_t> JsonFields::integer(const char* key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<int32_t> result = as_int32(*value);
  if (!result) wrong_type(where_, full_name(key), "an integer of at most 32 bits");
  return result;
}

std::optional<float> JsonFields::number(const char* key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) wrong_type(where_, full_name(key), "a number");
  const double wide = value->get<double>();
  // Also false for NaN; converting anything beyond a float's range would be undefined.
  if (!(std::abs(wide) <= static_cast<double>(std::numeric_limits<float>::max()))) {
    wrong_type(where_, full_name(key), "a finite number");
  }
  return static_cast<float>(wide);
}

std::optional<bool> JsonFields::boolean(const char* key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) wrong_type(where_, full_name(key), "true or false");
  return value->get<bool>();
}

std::optional<std::string> JsonFields::text(const char* key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) wrong_type(where_, full_name(key), "a string");
  return value->get<std::string>();
}

int32_t JsonFields::required_integer(const char* key) const {
  const std::optional<int32_t> value = integer(key);
  if (!value) bad_input("{}: {} is missing", where_, full_name(key));
  return *value;
}

float JsonFields::required_number(const char* key) const {
  const std::optional<float> value = number(key);
  if (!value) bad_input("{}: {} is missing", where_, full_name(key));
  return *value;
}

std::optional<int32_t> as_int32(const json& value) {
  constexpr double kLowest = std::numeric_limits<int32_t>::min();
  constexpr double kHighest = std::numeric_limits<int32_t>::max();
  if (!value.is_number()) return std::nullopt;
  const double wide = value.get<double>();  // 64-bit integers may round here, but never into 32 bits
  if (!(wide >= kLowest && wide <= kHighest) || wide != std::trunc(wide)) return std::nullopt;
  return static_cast<int32_t>(wide);
}

}  // namespace verbatim
