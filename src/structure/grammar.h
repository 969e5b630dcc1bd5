#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "structure/node.h"

namespace verbatim {

using ByteSet = std::bitset<256>;

/// A place in a grammar: what may come next there, and where it leads.
struct Place {
  enum class Kind : uint8_t {
    kReturn,  ///< the end of a rule
    kBytes,   ///< a byte of the set `a`, then `next`
    kToken,   ///< the special token `a`, then `next`
    kCall,    ///< the rule `a`, then `next`
    kCount,   ///< the places from `a` to a kReturn, `least` to `most` times, then `next`
    kSplit,   ///< any of `next` places, listed from targets[a] on
    kLoop,    ///< the places from `a`, which lead back here, or `next`
  };
  Kind kind = Kind::kReturn;
  int32_t a = 0;
  int32_t next = 0;
  int32_t least = 0;
  int32_t most = -1;  ///< -1: without end
  /// Of kCount and kLoop: the class of characters (Grammar::loops) any of which is one round by itself; -1 if
  /// there is no such class.
  int32_t loop = -1;
};

/// A grammar over bytes and special tokens: a network of places with rules that call each other.
struct Grammar {
  static constexpr int32_t kReturn = 0;                     ///< the place of every return
  static constexpr int32_t kImpossible = int32_t{1} << 30;  ///< see `need`
  /// The deepest nesting of a text. What would nest deeper is not allowed to begin.
  static constexpr int32_t kDeepest = 256;

  std::vector<Place> places;
  std::vector<ByteSet> sets;
  std::vector<int32_t> targets;
  std::vector<int32_t> rules;  ///< the first place of each rule
  std::vector<ByteSet> loops;  ///< the bytes below 128 that a class of characters lacks, by class
  /// By place: how many calls deep one must be able to go to get from there to a return; kImpossible where
  /// there is no way.
  std::vector<int32_t> need;
  int32_t start = kReturn;
};

/// Finds the special token that a vocabulary spells like this; nothing if there is none.
using FindSpecial = std::function<std::optional<int32_t>(std::string_view)>;

/// Turns a structure into a grammar. Throws Error(kBadInput), naming the place in the schema where there is
/// one, when the structure allows no text or is too large.
Grammar make_grammar(const Structure::Node& node, const FindSpecial& find_special);

}  // namespace verbatim
