#include "inspect_sparse.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "section.h"

namespace verbatim::app {

namespace {

using nlohmann::ordered_json;

/// The sparse parts of all matrices in one format, added up.
struct Sum {
  int64_t weights = 0;
  int64_t bytes = 0;
  int64_t entries = 0;
  int64_t columns = 0;
  int64_t most_entries = 0;
  int64_t fullest_entries = 0;
  std::vector<int64_t> columns_by_entries;
  std::optional<double> sensitivity;
  double sparse_sensitivity = 0.0;
  std::vector<const SparsePartReport*> matrices;

  double share() const { return static_cast<double>(entries) / static_cast<double>(weights); }
};

std::map<std::string, Sum> sums_by_format(const std::vector<SparsePartReport>& parts) {
  std::map<std::string, Sum> sums;
  for (const SparsePartReport& part : parts) {
    Sum& sum = sums[part.format];
    sum.weights += part.weights;
    sum.bytes += part.bytes;
    sum.entries += part.entries;
    sum.columns += part.columns;
    sum.most_entries = std::max(sum.most_entries, part.most_entries);
    sum.fullest_entries += part.fullest_entries;
    sum.columns_by_entries.resize(std::max(sum.columns_by_entries.size(), part.columns_by_entries.size()));
    for (size_t i = 0; i < part.columns_by_entries.size(); ++i) {
      sum.columns_by_entries[i] += part.columns_by_entries[i];
    }
    if (part.sensitivity) {
      sum.sensitivity = sum.sensitivity.value_or(0.0) + *part.sensitivity;
      sum.sparse_sensitivity += *part.sparse_sensitivity;
    }
    sum.matrices.push_back(&part);
  }
  return sums;
}

/// A part of a whole; 0 of nothing.
double part_of(double part, double whole) {
  return whole > 0.0 ? part / whole : 0.0;
}
double part_of(int64_t part, int64_t whole) {
  return part_of(static_cast<double>(part), static_cast<double>(whole));
}

/// "31 columns have none, 12 have 1, 4 have 2-3"
std::string histogram_text(const std::vector<int64_t>& columns) {
  std::string text;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == 0) continue;
    const int64_t first = i == 0 ? 0 : int64_t{1} << (i - 1);
    const int64_t last = i == 0 ? 0 : 2 * first - 1;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", columns[i],
                        text.empty() ? "columns have " : "have ");
    text += i == 0 ? "none" : first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

ordered_json histogram_json(const std::vector<int64_t>& columns) {
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < columns.size(); ++i) {
    list.push_back({{"from", i == 0 ? 0 : int64_t{1} << (i - 1)}, {"columns", columns[i]}});
  }
  return list;
}

}  // namespace

void add_sparse_sections(std::string& out, const std::vector<SparsePartReport>& parts, bool each) {
  for (const auto& [format, sum] : sums_by_format(parts)) {
    Section section(out, fmt::format("sparse part of {}", format).c_str());
    section.line("kept apart", "{} of {} weights, {:.3f} %", sum.entries, sum.weights, 100 * sum.share());
    section.line("by column", "{}", histogram_text(sum.columns_by_entries));
    section.line("skew", "the fullest hundredth of the columns holds {:.1f} %; most in one column: {}",
                 100 * part_of(sum.fullest_entries, sum.entries), sum.most_entries);
    if (sum.sensitivity) {
      section.line("sensitivity", "{:.2f} % of the sensitivity of all weights",
                   100 * part_of(sum.sparse_sensitivity, *sum.sensitivity));
    }
    if (!each) continue;
    size_t longest = 0;
    for (const SparsePartReport* const part : sum.matrices) longest = std::max(longest, part->matrix.size());
    out += '\n';
    for (const SparsePartReport* const part : sum.matrices) {
      out += fmt::format(
          "  {:<{}} {:>6.2f} bits, {:>6.3f} % apart, {:>5.1f} % of it in a hundredth of the columns",
          part->matrix, longest, part->bits_per_weight(), 100 * part_of(part->entries, part->weights),
          100 * part_of(part->fullest_entries, part->entries));
      if (part->sensitivity) {
        out += fmt::format(", {:>5.2f} % of the sensitivity",
                           100 * part_of(*part->sparse_sensitivity, *part->sensitivity));
      }
      out += '\n';
    }
  }
}

ordered_json sparse_json(const std::vector<SparsePartReport>& parts) {
  ordered_json formats = ordered_json::object();
  for (const auto& [format, sum] : sums_by_format(parts)) {
    ordered_json& object = formats[format];
    object = {{"weights", sum.weights},
              {"entries", sum.entries},
              {"most_entries", sum.most_entries},
              {"fullest_entries", sum.fullest_entries},
              {"columns_by_entries", histogram_json(sum.columns_by_entries)},
              {"sensitivity_share", nullptr}};
    if (sum.sensitivity) object["sensitivity_share"] = part_of(sum.sparse_sensitivity, *sum.sensitivity);
    ordered_json& matrices = object["matrices"] = ordered_json::array();
    for (const SparsePartReport* const part : sum.matrices) {
      ordered_json share;
      if (part->sensitivity) share = part_of(*part->sparse_sensitivity, *part->sensitivity);
      matrices.push_back({{"name", part->matrix},
                          {"weights", part->weights},
                          {"bits_per_weight", part->bits_per_weight()},
                          {"entries", part->entries},
                          {"columns", part->columns},
                          {"most_entries", part->most_entries},
                          {"fullest_entries", part->fullest_entries},
                          {"columns_by_entries", histogram_json(part->columns_by_entries)},
                          {"sensitivity_share", std::move(share)}});
    }
  }
  return formats;
}

}  // namespace verbatim::app
