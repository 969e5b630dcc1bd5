#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "speculation/evaluator.h"

namespace verbatim {

/// What a pass costs by its rows, for one model in one reading on this machine.
class PassCosts {
 public:
  /// 17: a row more than a tile of AMX holds costs as much as several.
  static constexpr std::array<int64_t, 10> kRows = {1, 2, 4, 8, 16, 17, 32, 64, 128, 256};

  PassCosts() = default;
  /// `seconds`: of passes over kRows rows.
  explicit PassCosts(const std::array<double, kRows.size()>& seconds);

  /// From now on rows are those of each of so many sequences that share the pass.
  void set_batch(int64_t sequences) { batch_ = sequences; }

  /// Seconds of a pass over so many rows, between the measured numbers linearly, as the machine runs now.
  double of(int64_t rows) const;
  /// The same as it was measured, whatever observe() heard since.
  double table(int64_t rows) const;
  /// Seconds that a row more costs, at so many.
  double row(int64_t rows) const;
  /// Takes in what a pass has cost: longer contexts and busier machines make all of them dearer alike.
  void observe(int64_t rows, double seconds);
  /// Likewise of a pass with so many rows of all sequences.
  void observe_pass(int64_t all_rows, double seconds);
  /// The machine is as busy for these passes as for those.
  void follow(const PassCosts& other) { scale_ = other.scale_; }

  const std::array<double, kRows.size()>& measured() const { return seconds_; }

 private:
  double at(int64_t all_rows) const;

  std::array<double, kRows.size()> seconds_{};
  int64_t batch_ = 1;
  double scale_ = 1.0;
  int64_t observed_ = 0;  // passes
};

/// Times passes over kRows rows at the positions of a short context, in a cache of its own: the median of a
/// few each. `progress` hears the fraction done.
PassCosts measure_pass_costs(Evaluator& evaluator, const PassKind& kind,
                             const std::function<void(double)>& progress = {});

/// What the costs of a pass depend on: the processor and its path, the threads, the model's sizes, the
/// reading and the version of this library.
std::string pass_costs_key(const Evaluator& evaluator, const PassKind& kind);

/// The folder where measurements are kept from run to run: $VERBATIM_CACHE_DIR, else
/// $XDG_CACHE_HOME/verbatim, else ~/.cache/verbatim; none when there is no home or VERBATIM_CACHE_DIR is
/// empty.
std::optional<std::filesystem::path> cache_folder();

/// The costs kept under a key, which names all that they depend on. None when there are none, or the file is
/// of another version or malformed.
std::optional<PassCosts> find_pass_costs(const std::filesystem::path& folder, const std::string& key);
/// Keeps them, if the folder can be written to; says whether it could.
bool keep_pass_costs(const std::filesystem::path& folder, const std::string& key, const PassCosts& costs);

/// The costs that are kept in the cache folder, or else measured now and kept.
PassCosts pass_costs(Evaluator& evaluator, const PassKind& kind,
                     const std::function<void(double)>& progress = {});

}  // namespace verbatim
