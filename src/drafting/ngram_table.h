#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "verbatim/ngrams.h"

namespace verbatim {

/// Counts which tokens followed which contexts: for every order n from `shortest` to `longest`, a table from
/// the last n tokens of a context to the tokens that came after it. The memory grows with the contexts up to
/// a limit; from there on a new context takes the place of one that was of little use. Contexts are told
/// apart by a hash alone, and once in a while two are mixed up, which is harmless: the counts only make
/// guesses.
class NgramTable {
 public:
  static constexpr int32_t kLongest = kLongestNgram;
  static constexpr int64_t kDefaultContexts = int64_t{1} << 16;
  static constexpr int64_t kMostContexts = kMostNgramContexts;

  struct Shape {
    int32_t shortest = 2;                 ///< at least 1
    int32_t longest = 6;                  ///< at least `shortest`, at most kLongest
    int64_t contexts = kDefaultContexts;  ///< the most entries of each order, 32 bytes each: a power of two,
                                          ///< 4 to kMostContexts
    int32_t vocabulary = 0;               ///< the number of tokens in the vocabulary

    bool operator==(const Shape&) const = default;
  };

  /// The tokens that came after a context, up to four, the most recent first. All zero if none did.
  struct Followers {
    static constexpr size_t kMost = 4;
    std::array<int32_t, kMost> tokens;
    std::array<uint8_t, kMost> counts;  ///< how often; 0 ends the list
    uint8_t others;                     ///< how often a token came that is no longer in the list
    std::array<uint8_t, 3> place;       ///< the table's own: where the context lies in a table of any size

    int32_t total() const { return counts[0] + counts[1] + counts[2] + counts[3] + others; }
  };

  /// The hashes of the end of a context: keys[i] of its last shortest + i tokens.
  using Keys = std::array<uint64_t, kLongest>;

  /// Makes an empty table. Throws Error(kUsage) if the shape is outside the ranges that Shape states.
  explicit NgramTable(const Shape& shape);

  const Shape& shape() const { return shape_; }
  int32_t orders() const { return shape_.longest - shape_.shortest + 1; }

  /// Hashes the end of `context` for each order. Returns the number of orders that the context is long enough
  /// for. Also prefetches the memory that find() will read for these keys.
  int32_t hash(std::span<const int32_t> context, Keys& keys) const;
  /// The followers of the context of keys[index], or null if it is not in the table.
  const Followers* find(int32_t index, uint64_t key) const;
  /// Counts that `token` followed the context of the first `orders` keys.
  void learn(const Keys& keys, int32_t orders, int32_t token);
  /// Counts all tokens of a text, each after the tokens before it.
  void learn(std::span<const int32_t> tokens);

  /// The number of entries in use, of all orders.
  int64_t size() const;
  /// The number of entries that the table has memory for now, of all orders.
  int64_t capacity() const;

  /// Reads a file that save() made. Throws Error(kBadInput) if it is malformed.
  static NgramTable load(const std::filesystem::path& path);
  /// Writes the entries in use to a file that does not exist yet. Throws Error(kBadInput) if the file exists
  /// and Error(kMachine) if it cannot be written.
  void save(const std::filesystem::path& path) const;

 private:
  struct Entry {
    uint32_t tag;   ///< the part of the key that does not say where the entry lies
    uint32_t used;  ///< the tick at which it was last learnt from
    Followers followers;

    bool empty() const { return followers.counts[0] == 0; }
  };
  static constexpr size_t kWays = 4;  ///< the number of entries that a context may lie in
  struct alignas(kWays * 32) Set {
    std::array<Entry, kWays> entries;
  };
  /// An entry as it lies in a file.
  struct Stored;

  /// The part of a key that says where its entry lies in a table of kMostContexts.
  static constexpr uint64_t kPlace = 0xffffff;
  static uint64_t place_of(const Entry& entry);
  size_t set_of(size_t index, uint64_t key) const {
    return static_cast<size_t>(key) & (sets_[index].size() - 1);
  }
  Entry* room_for(size_t index, uint64_t key);
  Entry& place_for(size_t index, uint64_t key);
  void grow(size_t index);
  static void count(Followers& followers, int32_t token);

  Shape shape_;
  size_t most_sets_;                    ///< of an order
  uint32_t tick_ = 0;                   ///< tokens learnt
  std::vector<std::vector<Set>> sets_;  ///< by order; the number of sets of each is a power of two
};

}  // namespace verbatim
