#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"

namespace verbatim {

/// A text that is made of another by rules of a vocabulary, which comes from a file and may be made to
/// exhaust memory.
class BoundedText {
 public:
  /// The text is made of one of `size` bytes. `rules` names the part of the vocabulary in errors.
  BoundedText(size_t size, const char* rules)
      : limit_(std::min((size + 1024) * kLargestGrowth, kLongest)), rules_(rules) {}

  /// Appends to the text. Throws Error(kBadInput) if that makes it absurdly long.
  void append(std::string_view text) {
    if (text.size() > limit_ - text_.size()) {
      bad_input("the vocabulary's {} makes the text more than {} times longer, or longer than {} bytes",
                rules_, kLargestGrowth, kLongest);
    }
    text_ += text;
  }
  size_t size() const { return text_.size(); }
  std::string take() { return std::move(text_); }

  /// How many times longer rules may make a text: a few replacements in a row may each multiply the length.
  static constexpr size_t kLargestGrowth = 64;

 private:
  // ICU counts bytes in 31 bits.
  static constexpr size_t kLongest = size_t{1} << 30;

  std::string text_;
  size_t limit_;
  const char* rules_;
};

}  // namespace verbatim
