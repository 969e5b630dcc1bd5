#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace verbatim {

/// A range of bytes of a text.
struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};

/// A regular expression over Unicode text, with the classes of characters that Unicode defines. Time and
/// memory are limited, since patterns come from files. Immutable and safe to share between threads.
class Regex {
 public:
  /// Compiles a pattern. Throws Error(kBadInput), naming `where`, if it is malformed or absurdly large.
  Regex(const std::string& pattern, const std::string& where);

  /// The matches in one text (valid UTF-8), from left to right, without empty ones. The text is not copied.
  class Matches {
   public:
    Matches(const Regex& regex, std::string_view text);
    /// The next match, or nullopt if there are no more. Throws Error(kBadInput) if the search exceeds its
    /// limits.
    std::optional<TextRange> next();

   private:
    const Regex* regex_;
    std::string_view text_;
    size_t offset_ = 0;
    std::shared_ptr<void> match_data_;
    std::shared_ptr<void> context_;
  };

 private:
  std::string pattern_;
  std::shared_ptr<void> code_;
};

}  // namespace verbatim
