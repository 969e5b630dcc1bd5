#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::jinja {

/// A text of valid UTF-8 of which every byte remembers whether the template's author wrote it or whether it
/// came from the data.
class TracedText {
 public:
  /// A stretch of bytes of one origin, which begins where the run before it ends.
  struct Run {
    size_t end = 0;
    bool from_template = false;
  };

  TracedText() = default;
  TracedText(std::string bytes, bool from_template);

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  /// Whether no byte came from the data.
  bool from_template() const;
  /// The runs in their order; neighbours differ, none is empty, and the last ends at size().
  const std::vector<Run>& runs() const { return runs_; }

  void append(std::string_view bytes, bool from_template);
  void append(const TracedText& other) { append(other, 0, other.size()); }
  /// Appends the bytes of `other` from offset `begin` up to offset `end`.
  void append(const TracedText& other, size_t begin, size_t end);
  /// The bytes from offset `begin` up to offset `end`.
  TracedText slice(size_t begin, size_t end) const;
  /// Whether the byte at an offset is the template's.
  bool from_template_at(size_t offset) const;

 private:
  std::vector<Run>::const_iterator run_at(size_t offset) const;

  std::string bytes_;
  std::vector<Run> runs_;
};

}  // namespace verbatim::jinja
