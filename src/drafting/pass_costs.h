#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "drafting/evaluator.h"
#include "drafting/kept_costs.h"

namespace verbatim {

/// The time of a pass by its number of rows, for one model in one reading on this machine: measured for a few
/// numbers of rows, interpolated between them, and scaled by how busy the machine is.
class PassCosts {
 public:
  /// The numbers of rows that are measured. 9 and 17 are among them because the first row of another tile
  /// costs as much as several.
  static constexpr std::array<int64_t, 11> kRows = {1, 2, 4, 8, 9, 16, 17, 32, 64, 128, 256};

  PassCosts() = default;
  /// `seconds[i]` is the time of a pass over kRows[i] rows.
  explicit PassCosts(const std::array<double, kRows.size()>& seconds);

  /// Sets the number of sequences that share a pass. Numbers of rows then are rows of one sequence, and every
  /// sequence is assumed to have as many.
  void set_batch(int64_t sequences) { batch_ = sequences; }

  /// The expected seconds of a pass over `rows` rows as the machine runs now, interpolated linearly between
  /// kRows.
  double of(int64_t rows) const;
  /// The seconds of a pass over `rows` rows by the measured table alone, without what observe() learnt since.
  double table(int64_t rows) const;
  /// The seconds that one row more than `rows` would add.
  double row(int64_t rows) const;
  /// Takes in the seconds of a pass over `rows` rows, and scales all costs by it: a longer context or a
  /// busier machine makes all passes slower alike.
  void observe(int64_t rows, double seconds);
  /// Takes in the seconds of a pass as observe() does, where `all_rows` counts the rows of all sequences of
  /// the batch.
  void observe_pass(int64_t all_rows, double seconds);
  /// Takes in the number of rows of a batch's pass that other sequences have beyond one each. Where there are
  /// few, the first drafted row of a sequence begins a tile that nobody else has a use for, and from then on
  /// the costs of more than one row include it.
  void observe_others(int64_t rows);
  /// Takes over from `other` how busy the machine is.
  void follow(const PassCosts& other) { scale_ = other.scale_; }

  const std::array<double, kRows.size()>& measured() const { return seconds_; }

 private:
  double at(int64_t all_rows) const;
  double tile_begun() const;
  void observe_ratio(double expected, double seconds);

  std::array<double, kRows.size()> seconds_{};
  int64_t batch_ = 1;
  double scale_ = 1.0;
  int64_t observed_ = 0;          // the number of passes taken in
  std::optional<double> others_;  // the average number of rows of others beyond one each; none: unknown
};

/// Measures the costs: times passes over kRows rows in turns, after a short context, in a cache of its own,
/// and takes the shortest time of several for each number of rows. All tokens differ, so that of a mixture of
/// experts a pass over more rows reads more experts, about as many as random choices would. `progress` is
/// called with the fraction done.
PassCosts measure_pass_costs(Evaluator& evaluator, const PassKind& kind,
                             const std::function<void(double)>& progress = {});

/// The key under which costs are kept. It names everything that they depend on: the processor and the machine
/// path, the threads, the model's sizes, the pass kind and the version of this library.
std::string pass_costs_key(const Evaluator& evaluator, const PassKind& kind);

/// Finds the costs that are kept under a key. Returns nothing if there are none, or if the file is malformed
/// or of another version.
std::optional<PassCosts> find_pass_costs(const std::filesystem::path& folder, const std::string& key);
/// Keeps costs under a key in a folder. Returns false if the folder cannot be written to.
bool keep_pass_costs(const std::filesystem::path& folder, const std::string& key, const PassCosts& costs);

/// The costs that are kept in the cache folder; if there are none, measures and keeps them.
PassCosts pass_costs(Evaluator& evaluator, const PassKind& kind,
                     const std::function<void(double)>& progress = {});

}  // namespace verbatim
