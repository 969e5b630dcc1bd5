#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace verbatim::agent {

/// JSON whose objects keep their members in the order in which they were written: positional arguments of a
/// tool follow the order of its schema's properties.
using Json = nlohmann::ordered_json;

/// How deep lists and objects may lie in each other, in plans, schemas and results.
inline constexpr int kDeepestJson = 64;
/// How many members an object of parsed JSON may have. Objects are looked through from their beginning for
/// each member, so time grows with the square of their number.
inline constexpr size_t kMostJsonMembers = 2000;

/// How many bytes of a text a message repeats.
inline constexpr size_t kShownBytes = 60;
/// How many bytes of an answer that is a failure a message repeats.
inline constexpr size_t kShownAnswerBytes = 300;

/// JSON as one line of text. Bytes of strings that are no UTF-8 become U+FFFD.
std::string dump(const Json& json);

/// A value as it stands within a text: a string as it is, anything else as JSON.
std::string as_text(const Json& json);

/// Parses a JSON text. Nothing if it is no JSON in UTF-8, or lies deeper than kDeepestJson or holds an object
/// of more than kMostJsonMembers members; `why` is then set to a line that says which of the two limits it
/// is.
std::optional<Json> parse_json(std::string_view text, std::string* why = nullptr);

/// The first bytes of a text, at most `most` of them, ending with a whole character.
std::string_view first_bytes(std::string_view text, size_t most);

}  // namespace verbatim::agent
