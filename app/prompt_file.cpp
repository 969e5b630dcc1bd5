#include "prompt_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/json_fields.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

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

PromptSet read_prompts(const std::string& path, int64_t limit) {
  const std::string text = read_text(path);
  PromptSet set{.name = std::filesystem::path(path).stem().string(), .prompts = {}};
  std::string_view rest = text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    if (limit > 0 && static_cast<int64_t>(set.prompts.size()) >= limit) break;
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    set.prompts.push_back(parse_line(line, fmt::format("{}:{}", path, number)));
  }
  if (set.prompts.empty()) bad_input("{} holds no prompts: a JSON object per line is expected", path);
  return set;
}

}  // namespace verbatim::app
