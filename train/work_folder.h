#pragma once

#include <filesystem>
#include <string>

#include "work_file.h"

namespace verbatim::train {

/// How far the work on a file of sensitivities has come: forward layer by layer, then backward.
struct Progress {
  int32_t forward = 0;   ///< layers that all samples have gone through
  int32_t backward = 0;  ///< steps backward that are complete: the loss, then layer by layer
  double loss = 0.0;     ///< the mean over samples of the loss, when the first step backward is complete
};

/// The folder FILE.work beside the file to be made, with all that going on after an interruption takes. What
/// the folder's progress counts is on the disk.
class WorkFolder {
 public:
  /// Makes the folder, or with `resume` takes up what is in one, if there is one. `identity` is a text that
  /// says what the work is about, and `layers` the number of the model's layers. Throws Error(kBadInput) when
  /// the folder holds anything that no run has left there, interrupted work that is not to be taken up or
  /// that belongs to other work, a note of progress that is damaged, or when another run is at work in it.
  WorkFolder(const std::filesystem::path& file, const std::string& identity, int32_t layers, bool resume);

  /// The residual streams before the layers and before the final norm, [layers + 1][samples][rows][hidden].
  WorkFile& streams() { return streams_; }
  /// Gradients with respect to the streams, [samples][rows][hidden]: those after `step` steps backward.
  WorkFile& gradients(int32_t step) { return step % 2 == 0 ? even_ : odd_; }
  /// The sensitivities of the matrices, in the order in which steps backward complete them.
  WorkFile& sensitivities() { return sensitivities_; }

  const Progress& progress() const { return progress_; }
  /// Notes progress, once all that it counts is on the disk.
  void note(const Progress& progress);
  /// Removes the folder.
  void remove();

 private:
  /// Keeps other runs out of the folder as long as it lives.
  class Lock {
   public:
    explicit Lock(const std::filesystem::path& folder);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int descriptor_;
  };

  std::filesystem::path path_;
  Lock lock_;
  std::string identity_;
  WorkFile streams_;
  WorkFile even_;
  WorkFile odd_;
  WorkFile sensitivities_;
  Progress progress_;
};

}  // namespace verbatim::train
