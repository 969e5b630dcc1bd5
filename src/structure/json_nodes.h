#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "structure/node.h"

namespace verbatim {

/// JSON that keeps the order of an object's keys.
using OrderedJson = nlohmann::ordered_json;

/// A string from `least` to `most` characters long (-1: of any length), with its quotes.
NodePointer json_string_node(int32_t least = 0, int32_t most = -1);
/// A string, with its quotes, that is none of `keys`. Characters are written in one way only, so that another
/// spelling of a key is none either. Keys that have their first 64 characters in common with one of `keys`
/// are left out too.
NodePointer other_key_node(std::span<const std::string> keys);
/// A value as `json.dumps` writes it, except that characters beyond ASCII stand for themselves.
std::string dumped(const OrderedJson& value);
/// Any JSON value, where `rule` is the rule that this node becomes.
NodePointer any_value_node(int32_t rule);
/// Any JSON object, with values of the rule.
NodePointer any_object_node(int32_t rule);
/// The string of a format of JSON Schema ("date-time"), with its quotes; nothing if the format is not known.
std::optional<NodePointer> format_node(std::string_view format);

}  // namespace verbatim
