#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/gguf.h"

namespace verbatim {

/// Metadata look-ups under the architecture's prefix, in the widths of ModelConfig.
class GgufFields {
 public:
  GgufFields(const GgufFile& gguf, std::string prefix, const std::string& where)
      : gguf_(gguf), prefix_(std::move(prefix)), where_(where) {}

  std::optional<int32_t> integer(const std::string& name) const { return any_integer(asked(name)); }

  int32_t required_integer(const std::string& name) const {
    const std::optional<int32_t> value = integer(name);
    if (!value) bad_input("{}: the metadata {} is missing", where_, prefix_ + name);
    return *value;
  }

  /// Looks up an integer by its whole name.
  std::optional<int32_t> any_integer(const std::string& key) const {
    const std::optional<int64_t> value = gguf_integer(gguf_, key);
    if (!value) return std::nullopt;
    using Limits = std::numeric_limits<int32_t>;
    if (*value < Limits::min() || *value > Limits::max())
      bad_input("{}: {} is {}, too large", where_, key, *value);
    return static_cast<int32_t>(*value);
  }

  std::optional<float> number(const std::string& name) const {
    const std::optional<double> value = gguf_float(gguf_, asked(name));
    if (!value) return std::nullopt;
    // Also false for NaN; converting anything beyond a float's range would be undefined.
    if (!(std::abs(*value) <= static_cast<double>(std::numeric_limits<float>::max()))) {
      bad_input("{}: {} should be a finite number", where_, prefix_ + name);
    }
    return static_cast<float>(*value);
  }

  std::optional<bool> boolean(const std::string& name) const { return gguf_bool(gguf_, asked(name)); }

  std::optional<std::string> text(const std::string& name) const { return gguf_string(gguf_, asked(name)); }

  /// Refuses metadata under the prefix that was never asked for and is not among `harmless`: it may change
  /// what the model is.
  void refuse_others(std::initializer_list<std::string_view> harmless) const {
    for (auto it = gguf_.metadata.lower_bound(prefix_); it != gguf_.metadata.end(); ++it) {
      if (!it->first.starts_with(prefix_)) break;
      const std::string_view name = std::string_view(it->first).substr(prefix_.size());
      if (asked_.contains(it->first) || std::find(harmless.begin(), harmless.end(), name) != harmless.end()) {
        continue;
      }
      bad_input("{}: the metadata {} is not known; this variant is not supported", where_,
                printable(it->first));
    }
  }

  const std::string& where() const { return where_; }

 private:
  const std::string& asked(const std::string& name) const { return *asked_.insert(prefix_ + name).first; }

  const GgufFile& gguf_;
  std::string prefix_;
  const std::string& where_;
  mutable std::set<std::string> asked_;  // whole names
};

}  // namespace verbatim
