#include "serve/token_json.h"

#include <algorithm>
#include <cmath>

namespace verbatim::serve {

namespace {

/// JSON has no infinity.
double finite(double logprob) {
  constexpr double kImpossible = -9999.0;
  return std::max(logprob, kImpossible);
}

Json entry(const Model& model, int32_t token, double logprob) {
  const std::string text = model.token_text(token);
  const std::string name = text.empty() ? model.piece(token) : text;
  Json bytes = Json::array();
  for (const char byte : name) bytes.push_back(static_cast<int>(static_cast<unsigned char>(byte)));
  return {{"token", name}, {"logprob", finite(logprob)}, {"bytes", std::move(bytes)}};
}

}  // namespace

std::string bytes_of_token(const Model& model, int32_t token, std::span<const int32_t> shown_tokens) {
  std::string text = model.token_text(token);
  const bool control = text.empty();
  if (control && std::find(shown_tokens.begin(), shown_tokens.end(), token) != shown_tokens.end()) {
    return model.piece(token);
  }
  return text;
}

std::string spelled(const Model& model, int32_t token) {
  const std::string text = model.token_text(token);
  if (text.empty()) return model.piece(token);
  if (find_invalid_utf8(text) == std::string::npos) return text;
  std::string bytes = "bytes:";
  for (const char byte : text) bytes += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return bytes;
}

bool only_ends(const Model& model, const GenerateOptions& options, int32_t token) {
  const auto has = [token](const std::vector<int32_t>& list) {
    return std::find(list.begin(), list.end(), token) != list.end();
  };
  return has(model.eos_tokens()) || has(options.stop_tokens);
}

Json chat_logprob(const Model& model, const ScoredToken& scored) {
  Json json = entry(model, scored.token, scored.logprob);
  Json& top = json["top_logprobs"] = Json::array();
  for (const TokenLogprob& each : scored.top) top.push_back(entry(model, each.token, each.logprob));
  return json;
}

void CompletionLogprobs::add(const ScoredToken& scored, bool known) {
  tokens_.push_back(spelled(model_, scored.token));
  logprobs_.push_back(known ? Json(finite(scored.logprob)) : Json());
  if (known) {
    Json top = Json::object();
    for (const TokenLogprob& each : scored.top) {
      // Of tokens with the same text the likeliest stays.
      top.emplace(spelled(model_, each.token), finite(each.logprob));
    }
    top_.push_back(std::move(top));
  } else {
    top_.push_back(nullptr);
  }
  offsets_.push_back(offset_);
  for (const char byte : model_.token_text(scored.token)) {
    offset_ += (static_cast<unsigned char>(byte) & 0xC0) != 0x80 ? 1 : 0;  // characters, not bytes
  }
}

Json CompletionLogprobs::take() {
  const auto taken = [](Json& list) { return std::exchange(list, Json::array()); };
  return {{"tokens", taken(tokens_)},
          {"token_logprobs", taken(logprobs_)},
          {"top_logprobs", taken(top_)},
          {"text_offset", taken(offsets_)}};
}

Json origins_json(const Model& model, const TokenStream::Piece& piece, std::span<const int32_t> shown_tokens,
                  std::span<const std::string> levels) {
  Json list = Json::array();
  for (size_t i = 0; i < piece.tokens.size() && i < piece.origins.size(); ++i) {
    const TokenOrigin& origin = piece.origins[i];
    Json token = {{"id", piece.tokens[i]},
                  {"bytes", bytes_of_token(model, piece.tokens[i], shown_tokens).size()},
                  {"origin", origin_name(origin.kind)}};
    const bool structure = origin.level == TokenOrigin::kStructure;
    if (structure || (origin.level >= 0 && origin.level < std::ssize(levels))) {
      constexpr double kDigits = 1e4;
      token["level"] = structure ? "structure" : levels[static_cast<size_t>(origin.level)];
      token["confidence"] = std::round(double{origin.confidence} * kDigits) / kDigits;
    }
    list.push_back(std::move(token));
  }
  return list;
}

std::vector<std::string> names_of_levels(const LoadedModel& model, const Recipe& recipe) {
  std::vector<std::string> names;
  for (const DraftLevel& level : model.engine.adapted(recipe).levels) names.push_back(level.short_name());
  return names;
}

}  // namespace verbatim::serve
