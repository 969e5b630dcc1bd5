#pragma once

#include <optional>
#include <string>
#include <vector>

#include "accelerator/decode.h"
#include "accelerator/paper/claims.h"

namespace verbatim::accelerator {

/// A cell of table III beside ours.
struct ComparedCell {
  Claim claim;
  double simulated = 0;    ///< speedup of the same L and r on the simulated machines
  double fitted = 0;       ///< by equation 2 with kFittedDraftTime, which is fitted
  double draft_time = 0;   ///< Td/Tar, simulated
  double verify_time = 0;  ///< Tv/Tar, simulated
};

/// A machine of figures 7 and 8 beside ours, means over the models.
struct ComparedGain {
  ClaimedGain claim;
  double speedup = 0;
  std::optional<double> dram_energy;  ///< of the memory alone
  /// Of the chips alone, had the other one the power that table IV states for full mode.
  std::optional<double> chip_energy;
};

/// A point of the map: the times of passes on the machine with one mapping and one bandwidth.
struct MapPoint {
  std::string mapping;
  double gigabytes_per_second = 0;
  double draft_time = 0;   ///< Td/Tar
  double verify_time = 0;  ///< Tv/Tar for so many rows
};

/// Claims and simulations side by side. Nothing in it is fitted but what says so.
struct Comparison {
  std::string machine;
  std::string memory;
  int64_t prompt_tokens = 0;
  std::vector<ComparedCell> cells;
  std::vector<ComparedGain> gains;
  std::vector<MapPoint> map;
  int64_t map_rows = 0;
  std::string map_model;
  /// The point of the map that lies nearest to (kFittedDraftTime, 1).
  MapPoint nearest;
};

/// Compares a machine with what the paper prints of these models. The prompts' length is open in the paper.
Comparison compare(const Hardware& hardware, const Dram& dram, int64_t prompt_tokens,
                   const std::vector<Shape>& shapes = paper_shapes());

/// The comparison as text, with the deviations.
std::string text_of(const Comparison& comparison);

}  // namespace verbatim::accelerator
