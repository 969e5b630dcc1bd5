#include "templates/traced_text.h"

#include <algorithm>

namespace verbatim::jinja {

TracedText::TracedText(std::string bytes, bool from_template) : bytes_(std::move(bytes)) {
  if (!bytes_.empty()) runs_.push_back({bytes_.size(), from_template});
}

bool TracedText::from_template() const {
  return runs_.empty() || (runs_.size() == 1 && runs_.front().from_template);
}

void TracedText::append(std::string_view bytes, bool from_template) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (!runs_.empty() && runs_.back().from_template == from_template) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), from_template});
  }
}

void TracedText::append(const TracedText& other, size_t begin, size_t end) {
  const std::string_view bytes = other.bytes_;
  for (auto run = other.run_at(begin); begin < end; ++run) {
    const size_t stop = std::min(end, run->end);
    append(bytes.substr(begin, stop - begin), run->from_template);
    begin = stop;
  }
}

TracedText TracedText::slice(size_t begin, size_t end) const {
  TracedText part;
  part.append(*this, begin, end);
  return part;
}

bool TracedText::from_template_at(size_t offset) const {
  return run_at(offset)->from_template;
}

std::vector<TracedText::Run>::const_iterator TracedText::run_at(size_t offset) const {
  return std::upper_bound(runs_.begin(), runs_.end(), offset,
                          [](size_t at, const Run& run) { return at < run.end; });
}

}  // namespace verbatim::jinja
