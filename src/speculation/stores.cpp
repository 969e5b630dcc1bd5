#include "speculation/stores.h"

#include <algorithm>
#include <string_view>

#include "base/available_memory.h"
#include "base/error.h"
#include "checkpoint/expert_names.h"
#include "formats/format.h"

namespace verbatim {

namespace {

using Names = std::vector<std::string>;

constexpr std::string_view kFull = "full";
/// The format whose upper bits are exactly the codes of kNestedCopy.
constexpr std::string_view kNested = "mxbf16";
constexpr std::string_view kNestedCopy = "mxfp4";
/// What each matrix drafts with: its own store where that holds drafts, else a copy in kNestedCopy.
constexpr std::string_view kDraft = "draft";

/// The number of weights below which a copy takes too little memory (250 MB) to spend time on measuring.
constexpr int64_t kSmallModel = 100'000'000;

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Adds a name unless it is there. "full" comes first, because the reading of that name takes the first exact
/// store.
void add_format(Names& names, std::string_view name) {
  if (!contains(names, name)) names.emplace(name == kFull ? names.begin() : names.end(), name);
}

/// The formats that the levels of a kind draft from, "full" among them where a level reads that.
Names draft_formats(const Recipe& recipe, DraftLevel::Kind kind) {
  Names names;
  for (const DraftLevel& level : recipe.levels) {
    if (level.kind != kind) continue;
    const Reading reading = parse_reading(level.reading, recipe.name);
    if (!contains(names, store_name(reading))) names.emplace_back(store_name(reading));
  }
  return names;
}

/// Whether weights in a format hold a draft and, bit by bit, the model's own weights. `bsfp` and `mxbf16`
/// refuse weights that they cannot hold; `bf16` and `f16` round them, so verification must not read these.
bool is_nested(const std::string& name) {
  if (name == kFull || name == kDraft) return false;
  const Format format = parse_format(name, "a recipe");
  return is_exact(format) && readings(format).size() > 1;
}

/// Whether all matrices have a format: those of one file can be of several types.
bool all_have(const DecoderWeights& weights, Format format) {
  bool all = true;
  each_matrix(weights, [&](const LinearWeight& matrix) { all = all && matrix.find(format) != nullptr; });
  return all;
}

/// Whether all matrices have a reading to draft with.
bool all_draft(const DecoderWeights& weights) {
  bool all = true;
  each_matrix(weights, [&](const LinearWeight& matrix) { all = all && draft_reading(matrix).has_value(); });
  return all;
}

bool holds(const DecoderWeights& weights, std::string_view reading) {
  const Reading parsed = parse_reading(reading, "a recipe");
  if (parsed == Reading::kDraft) return all_draft(weights);
  return parsed == Reading::kFull || all_have(weights, reading_format(parsed));
}

/// The reading that drafts in place of one whose store is not there, the same for all matrices if it can be
/// (docs/formats.md). Empty if some matrix has none.
std::string_view stand_in(const DecoderWeights& weights) {
  if (!all_draft(weights)) return {};
  const Reading first = *draft_reading(weights.head);
  bool same = true;
  each_matrix(weights, [&](const LinearWeight& matrix) { same = same && draft_reading(matrix) == first; });
  return same ? reading_name(first) : kDraft;
}

Names formats_of_target(std::span<const Recipe> recipes, const WeightSource& source, FavouredStore favoured) {
  Names names;
  for (const Recipe& recipe : recipes) {
    check_scheme(recipe, source.scheme);
    // A planner takes what there is, and without drafts a packed file need not be lossless.
    if (source.packed && (recipe.planned || (recipe.plain() && recipe.reading == kFull && !source.exact))) {
      return {};
    }
    for (const std::string& name : recipe.formats()) {
      if (!recipe.planned) add_format(names, name);
    }
  }
  // Lossless weights that hold drafts too serve every recipe that reads the model's own.
  if (std::any_of(names.begin(), names.end(), is_nested)) std::erase(names, kFull);
  const bool copy = contains(names, kFull) || !source.all_bf16 || favoured == FavouredStore::kCopy;
  for (const Recipe& recipe : recipes) {
    if (!recipe.planned) continue;
    for (const std::string& name : recipe.formats()) {
      if (name == kNested && copy && !contains(names, kNested)) {
        // Models of few bits hold drafts themselves, in about as many bits as a copy would.
        add_format(names, kFull);
        add_format(names, source.all_bf16 ? kNestedCopy : kDraft);
      } else if (name != kFull || std::none_of(names.begin(), names.end(), is_nested)) {
        add_format(names, name);
      }
    }
  }
  return names;
}

Names formats_of_draft_model(std::span<const Recipe> recipes, const WeightSource& source) {
  Names names;
  for (const Recipe& recipe : recipes) {
    if (source.packed && recipe.planned) return {};
    for (const std::string& name : recipe.draft_model_formats()) {
      // A planned recipe reads "full" where the format is not there.
      const bool impossible = recipe.planned && name == kNested && !source.all_bf16;
      add_format(names, impossible ? kFull : name);
    }
  }
  return names;
}

}  // namespace

Names Recipe::formats() const {
  const Names drafts = draft_formats(*this, DraftLevel::Kind::kSelf);
  if (reading == kFull && std::any_of(drafts.begin(), drafts.end(), is_nested)) return drafts;
  Names names = {std::string(store_name(parse_reading(reading, "recipe " + name)))};
  for (const std::string& draft : drafts) {
    if (!contains(names, draft)) names.push_back(draft);
  }
  return names;
}

Names Recipe::draft_model_formats() const {
  return draft_formats(*this, DraftLevel::Kind::kModel);
}

WeightSource weight_source(const Checkpoint& checkpoint) {
  const auto every_matrix = [&](auto&& has) {
    return std::ranges::all_of(checkpoint.tensors, [&](const auto& named) {
      const auto& [name, tensor] = named;
      // Routers have no formats: they are in F32, and so are they in many files.
      return tensor.shape.size() < 2 || has(tensor) || is_router(checkpoint.config, name);
    });
  };
  int64_t weights = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (tensor.shape.size() < 2) continue;
    int64_t count = 1;
    for (const int64_t extent : tensor.shape) count *= extent;
    weights += count;
  }
  return {.all_bf16 = every_matrix([](const TensorView& tensor) { return tensor.is_bf16(); }),
          .weights = weights,
          .scheme = checkpoint.config.quantization};
}

WeightSource weight_source(const Container& container) {
  return {.packed = true, .exact = container.exact(), .scheme = container.header.config.quantization};
}

WeightSource weight_source(const std::filesystem::path& model) {
  return is_packed(model) ? weight_source(open_container(model)) : weight_source(open_checkpoint(model));
}

Names formats_for(std::span<const Recipe> recipes, const WeightSource& source, ModelRole role,
                  FavouredStore favoured) {
  return role == ModelRole::kTarget ? formats_of_target(recipes, source, favoured)
                                    : formats_of_draft_model(recipes, source);
}

Names formats_for_machine(std::span<const Recipe> recipes, const WeightSource& source, ModelRole role,
                          ThreadTeam& team) {
  const Names nested = formats_for(recipes, source, role, FavouredStore::kNested);
  const Names copy = formats_for(recipes, source, role, FavouredStore::kCopy);
  if (nested == copy) return nested;
  const FavouredStore favoured =
      favoured_store(source.weights, available_memory(), [&] { return store_costs(team); });
  return favoured == FavouredStore::kNested ? nested : copy;
}

FavouredStore favoured_store(int64_t weights, std::optional<int64_t> available,
                             const std::function<StoreCosts()>& costs) {
  if (weights < kSmallModel) return FavouredStore::kCopy;
  // BF16 and a copy of 4.25 bits, and as much again as a tenth of them for caches and the system.
  const double bytes = static_cast<double>(weights) * (16.0 + 4.25) / 8.0 * 1.1;
  if (available && bytes > static_cast<double>(*available)) return FavouredStore::kNested;
  return nested_keeps_up(costs()) ? FavouredStore::kNested : FavouredStore::kCopy;
}

void check_scheme(const Recipe& recipe, QuantizationScheme scheme) {
  if (recipe.scheme.empty() || recipe.scheme == scheme_name(scheme)) return;
  fail(ErrorKind::kUsage, "recipe {} runs what `verbatim quantize MODEL -o DIR --scheme {}` makes",
       recipe.name, recipe.scheme);
}

void require_stores(const Recipe& recipe, const DecoderWeights& weights) {
  if (recipe.planned) {
    // A planner does without drafts whose weights are not there, not without the weights that verify.
    const Reading reading = parse_reading(recipe.reading, "recipe " + recipe.name);
    each_matrix(weights, [&](const LinearWeight& matrix) { matrix.resolve(reading); });
    return;
  }
  for (const std::string& name : recipe.formats()) {
    const bool there = name == kFull || (name == kDraft ? all_draft(weights)
                                                        : all_have(weights, parse_format(name, recipe.name)));
    if (there) continue;
    fail(ErrorKind::kUsage,
         "recipe {} needs all weights in {}: load the model for the recipe (ModelOptions::recipe), or with "
         "them",
         recipe.name, name);
  }
}

Recipe with_stores_of(const Recipe& recipe, const Decoder& decoder, const DecoderWeights* draft_weights) {
  if (!recipe.planned) return recipe;
  const DecoderWeights& weights = decoder.weights();
  Recipe used = recipe;
  used.levels.clear();
  for (DraftLevel level : recipe.levels) {
    if (level.experts > 0 && level.experts >= decoder.config().experts.used) continue;
    if (level.kind == DraftLevel::Kind::kModel) {
      if (draft_weights == nullptr) continue;
      if (!holds(*draft_weights, level.reading)) level.reading = kFull;
    }
    if (level.kind == DraftLevel::Kind::kSelf && !holds(weights, level.reading)) {
      level.reading = stand_in(weights);
      if (level.reading.empty()) continue;
    }
    used.levels.push_back(level);
  }
  return used;
}

}  // namespace verbatim
