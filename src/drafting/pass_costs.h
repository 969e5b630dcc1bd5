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
/// numbers of rows, interpolated between them, scaled by how busy the machine is, and put right by passes
/// over different numbers of rows that follow each other.
class PassCosts {
 public:
  /// The numbers of rows that are measured. 9 and 17 are among them because the first row of another tile
  /// costs as much as several, and 3, 5 and 6 because some kernels take two or four rows at a time.
  static constexpr std::array<int64_t, 15> kRows = {1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 32, 64, 128, 256};

  PassCosts() = default;
  /// `seconds[i]` is the time of a pass over kRows[i] rows.
  explicit PassCosts(const std::array<double, kRows.size()>& seconds);

  /// Sets the number of sequences that share a pass. Numbers of rows then are rows of one of them, and the
  /// others have as many.
  void set_batch(int64_t sequences) { batch_ = sequences; }

  /// The expected seconds of a pass over `rows` rows as the machine runs now, interpolated linearly between
  /// kRows.
  double of(int64_t rows) const;
  /// The expected seconds of a pass as of() gives them, where `all_rows` counts the rows of all sequences of
  /// the batch.
  double of_pass(int64_t all_rows) const;
  /// The seconds of a pass over `all_rows` rows, of all sequences of the batch, by the measured table alone,
  /// without what observe() learnt since.
  double table(int64_t all_rows) const;
  /// The seconds that one row more than `rows` would add.
  double row(int64_t rows) const;
  /// The seconds that a row adds to passes over about `rows` rows: the average from two rows fewer to two
  /// rows more, because the measured costs of neighboring numbers of rows differ by chance, too.
  double row_near(int64_t rows) const;
  /// Takes in the seconds of a pass over `rows` rows, and scales all costs by it: a longer context or a
  /// busier machine makes all passes slower alike. Where the pass before it had another number of rows, the
  /// ratio of the two costs moves towards that of their times: the measured ones may have been disturbed, and
  /// memory and products need not become slower by the same factor.
  void observe(int64_t rows, double seconds);
  /// Takes in the seconds of a pass as observe() does, where `all_rows` counts the rows of all sequences of
  /// the batch.
  void observe_pass(int64_t all_rows, double seconds);
  /// Takes over from `other` how busy the machine is.
  void follow(const PassCosts& other) { scale_ = other.scale_; }
  /// Whether observe() or observe_pass() has taken in a pass.
  bool observed() const { return observed_ > 0; }

  const std::array<double, kRows.size()>& measured() const { return seconds_; }

 private:
  /// A place among kRows: `share` of the way from kRows[after - 1] to kRows[after], beyond the last above 1.
  struct Place {
    size_t after;
    double share;
  };
  static Place place_of(double all_rows);
  static double at(const std::array<double, kRows.size()>& seconds, double all_rows);
  void compare(int64_t all_rows, double ratio);
  void correct(int64_t all_rows, double change);

  std::array<double, kRows.size()> seconds_{};  // as measured
  std::array<double, kRows.size()> learnt_{};   // with the corrections of observe(), before scaling
  int64_t batch_ = 1;
  double scale_ = 1.0;
  int64_t last_rows_ = 0;  // the rows of the last pass taken in; 0: none
  double last_ratio_ = 0;  // the seconds of that pass over its cost in learnt_
  int64_t observed_ = 0;   // the number of passes taken in
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
