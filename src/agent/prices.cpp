#include <fmt/format.h>
#include <toml++/toml.h>

#include "agent/json.h"
#include "verbatim/agent.h"
#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim {

namespace {

using agent::kShownBytes;

/// Tables nest as deep as dots in a key say, and are freed recursively, so a file must not be long.
constexpr size_t kMostPriceBytes = size_t{16} << 10;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorKind::kBadInput, fmt::format("{}: {}", shown(file.string(), kShownBytes), what));
}

double price(const toml::table& model, std::string_view key, const std::filesystem::path& file,
             const std::string& name) {
  const toml::node* const node = model.get(key);
  const auto value = node && node->is_number() ? node->value<double>() : std::nullopt;
  if (!value || !(*value >= 0 && *value <= 1e9)) {
    refuse(file, fmt::format("[{}]: `{}` should be the price of a million tokens, from 0 to 1e9",
                             shown(name, kShownBytes), key));
  }
  return *value;
}

}  // namespace

AgentPrices read_agent_prices(const std::filesystem::path& file, const std::string& model) {
  toml::table table;
  try {
    table = toml::parse(read_text(file, kMostPriceBytes));
  } catch (const toml::parse_error& error) {
    refuse(file, fmt::format("line {}: {}", error.source().begin.line, error.description()));
  }
  std::string names;
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    if (!value.is_table()) refuse(file, fmt::format("`{}` should be a table", shown(name, kShownBytes)));
    names += fmt::format("{}`{}`", names.empty() ? "" : ", ", shown(name, kShownBytes));
    for (const auto& [inner, ignored] : *value.as_table()) {
      if (inner.str() != "prompt" && inner.str() != "reply") {
        refuse(file, fmt::format("[{}]: `{}` is no key here; they are prompt and reply",
                                 shown(name, kShownBytes), shown(inner.str(), kShownBytes)));
      }
    }
  }
  const toml::node* const found = table.get(model);
  if (!found) {
    refuse(file, fmt::format("there is no price of the model `{}`; there are {}", shown(model, kShownBytes),
                             names.empty() ? "none" : names));
  }
  return {.prompt = price(*found->as_table(), "prompt", file, model),
          .reply = price(*found->as_table(), "reply", file, model)};
}

}  // namespace verbatim
