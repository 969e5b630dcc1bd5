#include <charconv>

#include "serve/ids.h"
#include "serve/openai/endpoints.h"

namespace verbatim::serve {

namespace {

Json model_json(const Models::Entry& entry) {
  static const int64_t began = unix_time();
  Json json = {{"id", entry.name}, {"object", "model"}, {"created", began}, {"owned_by", "verbatim"}};
  json["verbatim"] = {{"loaded", entry.loaded != nullptr}};
  if (entry.loaded != nullptr) json["verbatim"]["context"] = entry.loaded->capacity();
  return json;
}

/// A part of a path with its percent signs resolved; those that are wrong stay.
std::string decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* const begin = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(begin, begin + 2, value, 16).ptr == begin + 2) {
      result += static_cast<char>(value);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

Json optional_number(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

Json stats_json(const Models::Entry& entry) {
  const ModelCounts::Totals totals = entry.counts->totals();
  Json recipes = Json::array();
  Json json = {{"name", entry.name}, {"loaded", entry.loaded != nullptr}, {"recipe", nullptr}};
  EngineStats stats;
  if (entry.loaded != nullptr) {
    stats = entry.loaded->engine.stats();
    json["recipe"] = entry.loaded->recipes.front().name;
    for (const Recipe& recipe : entry.loaded->recipes) recipes.push_back(recipe.name);
  }
  json["recipes"] = std::move(recipes);
  json["running"] = stats.running;
  json["waiting"] = stats.waiting;
  json["tokens_per_second"] = totals.tokens_per_second;
  json["plain_tokens_per_second"] = optional_number(totals.plain_tokens_per_second);
  json["generated"] = totals.generated;
  json["prompt"] = totals.prompt;
  json["cached"] = totals.cached;
  json["drafted"] = totals.drafted;
  json["accepted"] = totals.accepted;
  json["lengths"] = totals.lengths;
  json["cache_bytes"] = stats.cache_bytes;
  json["cache_bytes_taken"] = stats.cache_bytes_taken;
  return json;
}

}  // namespace

void list_models(const Context& context, const std::shared_ptr<Call>& call) {
  Json data = Json::array();
  for (const Models::Entry& entry : context.models.list()) data.push_back(model_json(entry));
  call->respond(dump({{"object", "list"}, {"data", std::move(data)}}));
}

void show_model(const Context& context, const std::shared_ptr<Call>& call, std::string_view id) {
  const std::string name = decoded(id);
  for (const Models::Entry& entry : context.models.list()) {
    if (entry.name == name) {
      call->respond(dump(model_json(entry)));
      return;
    }
  }
  throw HttpError(404,
                  fmt::format("this server has no model {}: GET /v1/models lists them", shown(name, 100)),
                  "model", "model_not_found");
}

void show_stats(const Context& context, const std::shared_ptr<Call>& call) {
  constexpr const char* kSums[] = {"running",     "waiting",          "tokens_per_second", "generated",
                                   "prompt",      "cached",           "drafted",           "accepted",
                                   "cache_bytes", "cache_bytes_taken"};
  Json models = Json::array();
  Json totals = Json::object();
  for (const char* const name : kSums) totals[name] = 0;
  for (const Models::Entry& entry : context.models.list()) {
    Json json = stats_json(entry);
    for (const char* const name : kSums) {
      if (json[name].is_number_float() || totals[name].is_number_float()) {
        totals[name] = totals[name].get<double>() + json[name].get<double>();
      } else {
        totals[name] = totals[name].get<int64_t>() + json[name].get<int64_t>();
      }
    }
    models.push_back(std::move(json));
  }
  call->respond(dump({{"models", std::move(models)}, {"totals", std::move(totals)}}));
}

}  // namespace verbatim::serve
