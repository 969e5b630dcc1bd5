#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace verbatim {

/// How the keys and values of a sequence are stored. Each choice but BF16 changes the text a little; with any
/// choice, speculative decoding gives the bytes of plain decoding with the same one.
struct CacheOptions {
  enum class Kind {
    kBf16,          ///< two bytes for each number
    kF16,           ///< two bytes for each number; for comparison
    kF32,           ///< four bytes for each number, with attention in F32 throughout; for comparison
    kInt8,          ///< one byte for each number, with a scale per position and head; for comparison
    kHierarchical,  ///< QuantSpec: 4 + 4 bits, and the latest positions in BF16
  };

  Kind kind = Kind::kBf16;
  /// Hierarchical: how many positions (of keys) or channels (of values) share a scale: 32, 64 or 128.
  int32_t group = 128;
  /// Hierarchical: the most positions that are kept in BF16, the latest ones; at least half as many always
  /// are.
  int32_t buffer = 256;
  /// Hierarchical: 8 bits, of which drafts may read the upper half, or 4 bits, which have no other half.
  int32_t bits = 8;
  /// Hierarchical: keys share scales by groups of channels of a position. QuantSpec finds the default better
  /// (Table 3).
  bool keys_by_position = false;
  /// Hierarchical: values share scales by groups of positions of a channel. QuantSpec finds the default
  /// better (Table 3).
  bool values_by_channel = false;

  bool operator==(const CacheOptions&) const = default;
};

/// The name of a way to store keys and values: "bf16", "f16", "f32", "int8" or "hierarchical", followed by
/// the options that differ from the defaults: "hierarchical:group=64,bits=4,keys=position".
std::string cache_name(const CacheOptions& options);

/// The way to store keys and values that cache_name() names so. Throws Error(kBadInput), naming `where`, for
/// an unknown name, option or value.
CacheOptions parse_cache(std::string_view text, const std::string& where);

}  // namespace verbatim
