#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "drafting/pass_costs.h"

namespace verbatim {

/// The seconds of a pass by its number of rows.
using SecondsOfRows = std::function<double(int64_t rows)>;

/// The tokens per second that a batch of `sequences` sequences usually gains: with drafts of the best common
/// length, of whose tokens the share `kept` is kept, or without drafts. `drafting` is empty if no network
/// drafts.
double usual_rate(int64_t sequences, double kept, const SecondsOfRows& verifying,
                  const SecondsOfRows& drafting);
/// The usual rate by tables of costs. `drafting` is null if no network drafts.
double usual_rate(int64_t sequences, double kept, const PassCosts& verifying, const PassCosts* drafting);

/// Chooses how many nodes of each sequence's draft a shared pass has rows for, in tokens per second of the
/// whole batch (SPEQ's eq. 1 and 2, for many sequences at once). A row of one sequence delays all, and where
/// rows come in tiles it costs nothing or the time of a whole tile, depending on the rows of all others.
/// `offers` has the path probabilities of every sequence's nodes, each list in descending order; the pass has
/// `rows` rows without any of them. The chosen nodes, which are the first ones of each list, gain the most
/// tokens beyond those that the batch would gain at `rate` tokens per second in the time that they add.
std::vector<int64_t> worthwhile_nodes(std::span<const std::span<const float>> offers, int64_t rows,
                                      double rate, const PassCosts& costs);

/// What one sequence brings to a shared drafting pass.
struct DraftingShare {
  double tokens;     ///< the tokens that it is expected to gain
  int64_t rows;      ///< its rows in the pass
  int64_t verified;  ///< its rows in the next pass that verifies, without the token that it drafts
};

/// Chooses which sequences take part in a drafting pass: those that together gain the most tokens beyond what
/// the batch would gain at `rate` tokens per second in the time of the pass and of the row that each of them
/// adds to the next pass that verifies, which has `waiting` rows of other sequences. Returns for each share
/// whether it takes part. None does where no drafting pass is worth its time.
std::vector<bool> worthwhile_shares(std::span<const DraftingShare> shares, int64_t waiting, double rate,
                                    const PassCosts& drafting, const PassCosts& verifying);

}  // namespace verbatim
