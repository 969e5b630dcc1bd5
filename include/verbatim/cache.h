#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace verbatim {

/// How the keys and values of a sequence are stored. Which of them it is changes the text a little, unless it
/// is BF16; with any of them speculative decoding gives the bytes of plain decoding with the same one.
struct CacheOptions {
  enum class Kind {
    kBf16,          ///< two bytes each
    kF16,           ///< likewise; for comparison
    kInt8,          ///< one byte each, with a scale per position and head; for comparison
    kHierarchical,  ///< QuantSpec: 4 + 4 bits and the latest positions in BF16
  };

  Kind kind = Kind::kBf16;
  // Of the hierarchical cache:
  int32_t group = 128;   ///< positions (of keys) or channels (of values) that share a scale: 32, 64 or 128
  int32_t buffer = 256;  ///< at most so many of the latest positions are in BF16, at least half of them
  int32_t bits = 8;      ///< 8: the draft reads the upper half; 4: there is no other
  /// Scales for groups of channels of a position, and groups of positions of a channel: the other way round
  /// than the paper finds best (QuantSpec Table 3).
  bool keys_by_position = false;
  bool values_by_channel = false;

  bool operator==(const CacheOptions&) const = default;
};

/// "bf16", "f16", "int8" or "hierarchical", followed by the options that are not the usual ones:
/// "hierarchical:group=64,bits=4,keys=position".
std::string cache_name(const CacheOptions& options);

/// The inverse. Throws Error(kBadInput), naming `where`, for what it does not know.
CacheOptions parse_cache(std::string_view text, const std::string& where);

}  // namespace verbatim
