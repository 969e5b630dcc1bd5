#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace verbatim {

/// GPT-2's way to write bytes in a vocabulary: every byte is one printable character, its own where it has
/// one ('a', 'é') and one from U+0100 upwards where not (a space is "Ġ").
std::string byte_level_text(std::string_view bytes);

/// The inverse: nullopt when `text` has a character that stands for no byte.
std::optional<std::string> byte_level_bytes(std::string_view text);

/// The pattern by which GPT-2 cuts a text into words.
inline constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace verbatim
