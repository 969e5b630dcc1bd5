#include "verbatim/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json_fields.h"

namespace verbatim {

namespace {

constexpr int kDeepest = 16;

std::string prompt_of(const JsonFields& fields) {
  if (const std::optional<std::string> prompt = fields.text("prompt")) return *prompt;
  if (const std::optional<std::string> question = fields.text("question")) {
    return question->empty() ? "" : "Question: " + *question + "\nAnswer:";
  }
  const nlohmann::json* const turns = fields.find("turns");
  if (turns == nullptr) {
    bad_input("{}: there is no prompt: one of \"prompt\", \"question\" and \"turns\" is needed",
              fields.where());
  }
  if (!turns->is_array() || turns->empty() || !turns->front().is_string()) {
    bad_input("{}: turns should be a list of texts", fields.where());
  }
  return turns->front().get<std::string>();
}

std::string parse_line(std::string_view line, const std::string& where) {
  const nlohmann::json object = parse_json(line, kDeepest, where);
  std::string prompt = prompt_of(JsonFields(object, where));
  if (prompt.empty()) bad_input("{}: the prompt is empty", where);
  return prompt;
}

}  // namespace

std::vector<std::string> parse_prompts(std::string_view text, const std::string& where, int64_t limit) {
  std::vector<std::string> prompts;
  for (int64_t number = 1; !text.empty(); ++number) {
    if (limit > 0 && std::ssize(prompts) >= limit) break;
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    prompts.push_back(parse_line(line, fmt::format("{}:{}", where, number)));
  }
  if (prompts.empty()) bad_input("{} holds no prompts: a JSON object per line is expected", where);
  return prompts;
}

}  // namespace verbatim
