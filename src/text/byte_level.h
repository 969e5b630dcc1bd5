#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace verbatim {

/// Writes bytes as a GPT-2 vocabulary does: every byte is one printable character, its own if it has one
/// ('a', 'é'), else one from U+0100 upwards (a space is "Ġ").
std::string byte_level_text(std::string_view bytes);

/// Turns such characters back into bytes, the inverse of byte_level_text(). nullopt if `text` has a character
/// that stands for no byte.
std::optional<std::string> byte_level_bytes(std::string_view text);

/// The pattern by which GPT-2 cuts a text into words.
inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace verbatim
