#include "bench/context_acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/text_io.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "engine/model_access.h"
#include "kv/make_cache.h"
#include "verbatim/verbatim.h"

namespace verbatim::bench {

namespace {

using nlohmann::json;

constexpr int kDeepest = 16;

bool is_share(const json& number) {
  return number.is_number() && number.get<double>() >= 0.0 && number.get<double>() <= 1.0;
}

/// Nothing where the file does not know it either.
std::optional<double> parse_share(const JsonFields& fields) {
  const json* const share = fields.find("share_beyond_buffer");
  if (share == nullptr || share->is_null()) return std::nullopt;
  if (!is_share(*share)) bad_input("{}: share_beyond_buffer should be from 0 to 1", fields.where());
  return share->get<double>();
}

std::vector<double> parse_survival(const JsonFields& fields, int32_t length) {
  const json* const shares = fields.find("survival_by_depth");
  if (shares == nullptr || !shares->is_array()) bad_input("{}: survival_by_depth is missing", fields.where());
  std::vector<double> survival;
  for (const json& share : *shares) {
    if (!is_share(share)) {
      bad_input("{}: survival_by_depth should hold numbers from 0 to 1", fields.where());
    }
    survival.push_back(share.get<double>());
  }
  if (std::ssize(survival) < length) {
    bad_input("{}: drafts were {} tokens deep where {} are asked for; measure with the same --lengths",
              fields.where(), survival.size(), length);
  }
  return survival;
}

}  // namespace

std::vector<ContextAcceptance> read_acceptance(const std::string& path, std::span<const std::string> recipes,
                                               int32_t length) {
  const json object = parse_json(app::read_text(path), kDeepest, path);
  const json* const list = JsonFields(object, path).find("acceptance");
  if (list == nullptr || !list->is_array()) {
    bad_input("{} holds no acceptance: the contexts.json of an earlier `bench context` is expected", path);
  }
  std::vector<ContextAcceptance> all;
  for (const std::string& recipe : recipes) {
    const std::string where = fmt::format("{}: acceptance of {}", path, recipe);
    const auto found = std::find_if(list->begin(), list->end(), [&](const json& one) {
      return one.is_object() && one.value("recipe", json()) == recipe;
    });
    if (found == list->end()) bad_input("{} is not there", where);
    const JsonFields fields(*found, where);
    ContextAcceptance& acceptance = all.emplace_back();
    acceptance.survival = parse_survival(fields, length);
    acceptance.share_beyond_buffer = parse_share(fields);
  }
  return all;
}

double share_beyond_buffer(const app::DecodeCase& one, const std::vector<app::TokenPrompts>& sets,
                           const std::vector<app::DecodeResult>& results) {
  // Of any size: the boundary is a function of the position alone.
  const std::unique_ptr<KvCache> cache = make_cache(
      one.recipe.cache, {1, 1, data_of(one.model).decoder.cache_shape().head_dim}, kAttentionChunk);
  const CodedChunks coded = cache->head(0, 0).coded;
  int64_t decoded = 0;
  int64_t beyond = 0;
  for (size_t set = 0; set < sets.size(); ++set) {
    for (size_t prompt = 0; prompt < sets[set].prompts.size(); ++prompt) {
      const auto first = std::ssize(sets[set].prompts[prompt]);
      // The last token that was generated has not been evaluated.
      const int64_t end = first + results[set].generated[prompt] - 1;
      for (int64_t position = first; position < end; ++position) {
        ++decoded;
        beyond += coded.end_chunk(position) > 0 ? 1 : 0;
      }
    }
  }
  return decoded == 0 ? 0.0 : static_cast<double>(beyond) / static_cast<double>(decoded);
}

}  // namespace verbatim::bench
