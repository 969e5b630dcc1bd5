#include "templates/value.h"

namespace verbatim::jinja {

namespace {

constexpr size_t kFewEntries = 8;

/// Keys that are equal in Python, and no others, have the same name.
std::string key_name(const Value& key) {
  if (const TracedText* text = text_of(key)) return "t" + text->bytes();
  if (const auto* boolean = std::get_if<bool>(&key)) return *boolean ? "i1" : "i0";
  if (const auto* integer = std::get_if<int64_t>(&key)) return "i" + std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&key)) return "d" + std::to_string(*number);
  return is<None>(key) ? "n" : "u";
}

bool same_key(const Value& key, std::string_view text) {
  const TracedText* own = text_of(key);
  return own != nullptr && own->bytes() == text;
}

}  // namespace

const Value* Dict::find_name(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &entries[found->second].second;
}

const Value* Dict::find(std::string_view key) const {
  if (!places_.empty()) return find_name("t" + std::string(key));
  for (const auto& [own, value] : entries) {
    if (same_key(own, key)) return &value;
  }
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (const TracedText* text = text_of(key)) return find(text->bytes());
  const std::string name = key_name(key);
  if (!places_.empty()) return find_name(name);
  for (const auto& [own, value] : entries) {
    if (key_name(own) == name) return &value;
  }
  return nullptr;
}

void Dict::set(const Value& key, Value value) {
  if (const Value* known = find(key)) {
    const_cast<Value&>(*known) = std::move(value);
    return;
  }
  entries.emplace_back(key, std::move(value));
  if (!places_.empty()) {
    places_.emplace(key_name(key), entries.size() - 1);
  } else if (entries.size() > kFewEntries) {
    for (size_t i = 0; i < entries.size(); ++i) places_.emplace(key_name(entries[i].first), i);
  }
}

bool truth(const Value& value) {
  if (is<Undefined>(value) || is<None>(value)) return false;
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer != 0;
  if (const auto* number = std::get_if<double>(&value)) return *number != 0;
  if (const TracedText* text = text_of(value)) return !text->empty();
  if (const auto* list = std::get_if<List*>(&value)) return !(*list)->items.empty();
  if (const auto* dict = std::get_if<Dict*>(&value))
    return (*dict)->is_namespace || !(*dict)->entries.empty();
  return true;
}

bool is_number(const Value& value) {
  return is<bool>(value) || is<int64_t>(value) || is<double>(value);
}

double as_double(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  const auto* boolean = std::get_if<bool>(&value);
  return boolean != nullptr && *boolean ? 1.0 : 0.0;
}

std::string_view type_name(const Value& value) {
  if (is<Undefined>(value)) return "something undefined";
  if (is<None>(value)) return "none";
  if (is<bool>(value)) return "a Boolean";
  if (is<int64_t>(value)) return "an integer";
  if (is<double>(value)) return "a number";
  if (is<TextPointer>(value)) return "a string";
  if (const auto* list = std::get_if<List*>(&value)) return (*list)->tuple ? "a tuple" : "a list";
  if (is<Dict*>(value)) return "a dictionary";
  return is<Loop*>(value) ? "a loop" : "something to call";
}

}  // namespace verbatim::jinja
