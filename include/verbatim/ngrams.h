#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace verbatim {

/// The most tokens that a guess of n-grams goes by.
inline constexpr int32_t kLongestNgram = 32;
/// The most contexts of each length that a table of n-grams can remember.
inline constexpr int64_t kMostNgramContexts = int64_t{1} << 24;

/// Which contexts a table of n-grams remembers.
struct NgramOptions {
  int32_t shortest = 1;  ///< the fewest tokens that a guess goes by, at least 1
  int32_t longest = 4;   ///< the most tokens that a guess goes by, from `shortest` to kLongestNgram
  /// The contexts of each length that there is room for, 32 bytes each: a power of two from 4 to
  /// kMostNgramContexts. The contexts that were of little use are left out where there is no room for all.
  int64_t contexts = int64_t{1} << 16;
};

/// Counts which tokens follow which in texts, and writes the file that DraftLevel::table names. The speed of
/// decoding depends on the file, never the text. Not for use from several threads at once.
class NgramCounter {
 public:
  /// Opens the vocabulary of a model, a packed one too; the weights are not read. Throws Error(kBadInput)
  /// when the model is malformed or has no vocabulary, and Error(kUsage) for options out of range.
  explicit NgramCounter(const std::filesystem::path& model, const NgramOptions& options = {});
  ~NgramCounter();
  NgramCounter(NgramCounter&&) noexcept;
  NgramCounter& operator=(NgramCounter&&) noexcept;

  /// Counts a text, in which special tokens are recognized. Throws Error(kBadInput), naming the text
  /// `where`, if it is not valid UTF-8.
  void add(std::string_view text, const std::string& where);

  /// The number of tokens of all texts so far.
  int64_t tokens() const;
  /// The number of contexts in the table.
  int64_t contexts() const;

  /// Writes the table to a file that does not exist yet. Throws Error(kBadInput) if the file exists and
  /// Error(kMachine) if it cannot be written.
  void save(const std::filesystem::path& file) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verbatim
