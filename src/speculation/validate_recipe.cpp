#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "checkpoint/model_config.h"
#include "drafting/sparse_levels.h"
#include "formats/format.h"
#include "kv/make_cache.h"
#include "verbatim/recipe.h"

namespace verbatim {

namespace {

constexpr int32_t kLongestDraft = 64;
constexpr int32_t kLongestMatch = 32;
constexpr int32_t kMostLayers = 1 << 20;
constexpr int32_t kMostExperts = 1 << 16;
constexpr int32_t kMostTokens = 1 << 24;
constexpr int32_t kMostBreadth = 8;
constexpr size_t kMostLevels = 8;

/// Written so that NaN is refused too.
template <typename Number>
void require_between(std::string_view key, Number value, double low, double high, const std::string& where) {
  if (value >= static_cast<Number>(low) && value <= static_cast<Number>(high)) return;
  bad_input("{}: \"{}\" must be a number from {} to {}", where, key, low, high);
}

void validate_self(const DraftLevel& level, const std::string& where) {
  constexpr std::string_view kCaches[] = {"full", "draft", "window", "snapkv"};
  if (std::find(std::begin(kCaches), std::end(kCaches), level.cache) == std::end(kCaches)) {
    bad_input("{}: unknown reading of the cache \"{}\"; known are full, draft, window and snapkv", where,
              level.cache);
  }
  require_between("budget", level.budget, 0.01, 1.0, where);
  require_between("layers", level.layers, 0, kMostLayers, where);
  require_between("experts", level.experts, 0, kMostExperts, where);
  if (parse_reading(level.reading, where) == Reading::kFull && level.layers == 0 && level.experts == 0 &&
      level.cache == "full") {
    bad_input("{}: a draft in the reading \"full\" would cost what the verification costs", where);
  }
}

void validate_ngram(const DraftLevel& level, const std::string& where) {
  require_between("longest_match", level.longest_match, 1, kLongestMatch, where);
  require_between("shortest_match", level.shortest_match, 1, kLongestMatch, where);
  if (level.shortest_match > level.longest_match) {
    bad_input("{}: \"shortest_match\" is above \"longest_match\"", where);
  }
}

void validate_level(const DraftLevel& level, const std::string& where) {
  switch (level.kind) {
    case DraftLevel::Kind::kSelf:
      validate_self(level, where);
      break;
    case DraftLevel::Kind::kModel:
      parse_reading(level.reading, where);
      break;
    case DraftLevel::Kind::kNgram:
      validate_ngram(level, where);
      break;
    default:
      bad_input("{}: unknown drafter kind {}", where, static_cast<int>(level.kind));
  }
  if (level.kind != DraftLevel::Kind::kSelf && level.experts != 0) {
    bad_input("{}: \"experts\" belongs to drafters of the kind self", where);
  }
  require_between("vocabulary", level.vocabulary, 0, kMostTokens, where);
  require_between("length", level.length, 1, kLongestDraft, where);
  require_between("threshold", level.threshold, 0.0, 1.0, where);
  require_between("breadth", level.breadth, 1, kMostBreadth, where);
  require_between("nodes", level.nodes, 0, kLongestDraft, where);
}

void validate_acceptance(const Recipe& recipe, const std::string& where) {
  require_between("rollback", recipe.rollback, 0.0, 1e6, where);
  if (recipe.lossless()) return;
  if (recipe.planned) bad_input("{}: the planner knows the acceptance rule exact alone", where);
  if (!recipe.plain() && recipe.levels.front().breadth > 1) {
    bad_input("{}: the acceptance rule {} takes a chain of drafts, no tree: let \"breadth\" be 1", where,
              recipe.acceptance == Recipe::Acceptance::kBild ? "bild" : "rejection");
  }
}

}  // namespace

void validate(const Recipe& recipe, const std::string& place) {
  const std::string where = place.empty() ? "recipe " + recipe.name : place;
  parse_reading(recipe.reading, where);
  const auto scheme = parse_scheme(recipe.scheme);
  if (!recipe.scheme.empty() && scheme.value_or(QuantizationScheme::kNone) == QuantizationScheme::kNone) {
    bad_input("{}: there is no quantization scheme \"{}\"; known are rtn, awq, gptq, atom and quarot", where,
              recipe.scheme);
  }
  check_cache(recipe.cache, where);
  if (recipe.levels.size() > kMostLevels)
    bad_input("{}: more than {} levels of drafters", where, kMostLevels);
  for (const DraftLevel& level : recipe.levels) {
    validate_level(level, where);
    if (level.kind == DraftLevel::Kind::kNgram && &level != &recipe.levels.back()) {
      bad_input("{}: nothing drafts for n-grams: they are the last level", where);
    }
  }
  validate_acceptance(recipe, where);
  if (const std::string mistake = sparse_mistake(recipe); !mistake.empty()) {
    bad_input("{}: {}", where, mistake);
  }
}

}  // namespace verbatim
