#include "drafting/sparse_levels.h"

#include <fmt/format.h>

#include <algorithm>

#include "kv/snapkv.h"
#include "kv/window.h"

namespace verbatim {

bool is_sparse(const DraftLevel& level) {
  return level.kind == DraftLevel::Kind::kSelf && (level.cache == "window" || level.cache == "snapkv");
}

std::string sparse_mistake(const Recipe& recipe) {
  const auto level = std::find_if(recipe.levels.begin(), recipe.levels.end(), is_sparse);
  if (level == recipe.levels.end()) return "";
  if (recipe.planned) return fmt::format("the planner does not draft with the cache \"{}\"", level->cache);
  using Kind = CacheOptions::Kind;
  if (recipe.cache.kind == Kind::kBf16 || recipe.cache.kind == Kind::kF16) return "";
  return fmt::format("drafts with the cache \"{}\" need the keys and values in bf16 or f16, not in {}",
                     level->cache, cache_name(recipe.cache));
}

std::unique_ptr<SparseCache> make_view(const DraftLevel& level, const CacheOptions& cache,
                                       const CacheShape& shape, int64_t capacity) {
  if (!is_sparse(level)) return nullptr;
  if (level.cache == "window") return std::make_unique<WindowView>(level.budget);
  const Element element = cache.kind == CacheOptions::Kind::kF16 ? Element::kF16 : Element::kBf16;
  return std::make_unique<SnapKvView>(shape, capacity, element, level.budget);
}

int64_t copied_positions(const DraftLevel& level, int64_t prompt) {
  return is_sparse(level) && level.cache == "snapkv" ? SnapKvView::selected_count(prompt, level.budget) : 0;
}

}  // namespace verbatim
