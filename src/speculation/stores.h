#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "container/container.h"
#include "model/decoder.h"
#include "model/weights.h"
#include "speculation/store_costs.h"
#include "verbatim/recipe.h"

namespace verbatim {

// The one place that says which stores a recipe needs of a model: before loading (formats_for), and of a
// model that is loaded (require_stores, with_stores_of).

/// The weights that a checkpoint or a packed file offers to recipes.
struct WeightSource {
  bool packed = false;    ///< a .vbt file, whose stores can only be chosen from
  bool exact = true;      ///< packed: every matrix has a store that holds the model's own weights bit for bit
  bool all_bf16 = false;  ///< not packed: every matrix is in BF16, as the format `mxbf16` requires
  int64_t weights = 0;    ///< not packed: the number of weights of all matrices
  QuantizationScheme scheme = QuantizationScheme::kNone;  ///< how the weights were quantized
};

WeightSource weight_source(const Checkpoint& checkpoint);
WeightSource weight_source(const Container& container);
/// The weight source of a model's file or folder, which is opened and checked for it.
WeightSource weight_source(const std::filesystem::path& model);

/// Which of the two models of a recipe is loaded.
enum class ModelRole {
  kTarget,  ///< the model that verifies, and drafts for itself
  kDraft,   ///< the other model, which `model` levels draft with
};

/// How a planned recipe holds weights in BF16 that it both verifies with and drafts from.
enum class FavouredStore {
  kNested,  ///< in `mxbf16`, 12.3 bits a weight
  kCopy,    ///< in BF16, which takes no unpacking, and once more in `mxfp4`, 20.25 bits a weight
};

/// The names of the formats to load a model in so that every one of the recipes can run on it, as
/// ModelOptions::formats has them. No names at all stand for every store of a packed file. One lossless store
/// serves all recipes: where a recipe that is not planned drafts from the upper bits of a lossless format, no
/// other lossless store is loaded; where only planned recipes would, they get a copy of their own to draft
/// from if a store of the model's own type is there anyway, or the weights are not in BF16, or `favoured` is
/// kCopy. Throws Error(kUsage) when a recipe runs models of another quantization scheme.
std::vector<std::string> formats_for(std::span<const Recipe> recipes, const WeightSource& source,
                                     ModelRole role = ModelRole::kTarget,
                                     FavouredStore favoured = FavouredStore::kNested);

/// The names of formats_for() with the store that this machine favours. Where the store makes a difference,
/// memory decides, and then what products cost here, which is measured once and kept
/// (speculation/store_costs.h).
std::vector<std::string> formats_for_machine(std::span<const Recipe> recipes, const WeightSource& source,
                                             ModelRole role, ThreadTeam& team);

/// The store that suits a machine on which `available` bytes of memory are free, if that is known: a copy to
/// draft from for a small model, and wherever it fits and the nested store does not keep up with BF16.
FavouredStore favoured_store(int64_t weights, std::optional<int64_t> available,
                             const std::function<StoreCosts()>& costs);

/// Throws Error(kUsage) unless the recipe runs models of this scheme.
void check_scheme(const Recipe& recipe, QuantizationScheme scheme);

/// Throws Error(kUsage) when a loaded model lacks weights that the recipe needs. A planned recipe needs only
/// the weights that verify.
void require_stores(const Recipe& recipe, const DecoderWeights& weights);

/// A planned recipe as a loaded model can run it: levels without their store draft from another store of four
/// bits, and levels without any store, without a draft model, or with fewer experts of a model that has no
/// fewer, are left out. `draft_weights` are the weights of the draft model, or null.
Recipe with_stores_of(const Recipe& recipe, const Decoder& decoder, const DecoderWeights* draft_weights);

}  // namespace verbatim
