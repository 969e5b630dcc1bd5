#include "context_acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app_support.h"
#include "base/error.h"
#include "checkpoint/json_fields.h"

namespace verbatim::app {

namespace {

using nlohmann::json;

constexpr int kDeepest = 16;

std::vector<double> parse_survival(const JsonFields& fields, int32_t length) {
  const json* const shares = fields.find("survival_by_depth");
  if (shares == nullptr || !shares->is_array()) bad_input("{}: survival_by_depth is missing", fields.where());
  std::vector<double> survival;
  for (const json& share : *shares) {
    if (!share.is_number() || !(share.get<double>() >= 0.0 && share.get<double>() <= 1.0)) {
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
  const json object = parse_json(read_text(path), kDeepest, path);
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
    all.push_back({parse_survival(JsonFields(*found, where), length)});
  }
  return all;
}

}  // namespace verbatim::app
