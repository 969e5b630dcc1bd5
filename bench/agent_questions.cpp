#include "bench/agent_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "verbatim/error.h"
#include "verbatim/text.h"

namespace verbatim::bench {

namespace {

constexpr size_t kMostBytes = 16 << 20;

/// A text that a plan can hold between quotation marks.
std::string plain(std::string text) {
  std::erase_if(
      text, [](char c) { return c == '"' || c == '\\' || c == '$' || static_cast<unsigned char>(c) < ' '; });
  return text;
}

/// Runs of words that begin with capitals, the first word of the question left out.
std::vector<std::string> names_in(const std::string& text) {
  std::vector<std::string> names;
  std::string run;
  size_t at = text.find(' ');
  while (at != std::string::npos) {
    const size_t begin = at + 1;
    at = text.find(' ', begin);
    std::string word = text.substr(begin, at == std::string::npos ? at : at - begin);
    const bool ends = !word.empty() && std::string_view(",?.;:").find(word.back()) != std::string_view::npos;
    if (ends) word.pop_back();
    const bool capital = !word.empty() && std::isupper(static_cast<unsigned char>(word[0])) != 0;
    if (capital) run += (run.empty() ? "" : " ") + word;
    if ((!capital || ends || at == std::string::npos) && !run.empty()) {
      names.push_back(plain(run));
      run.clear();
    }
  }
  return names;
}

std::vector<std::string> titles_in(const std::string& text) {
  std::vector<std::string> titles;
  const std::string mark = "similar to ";
  const size_t first = text.find(mark);
  const size_t options = text.find("\nOptions:\n");
  if (first == std::string::npos || options == std::string::npos) return titles;
  const auto split = [&](const std::string& part, const std::string& separator) {
    for (size_t at = 0; at < part.size();) {
      const size_t end = std::min(part.find(separator, at), part.size());
      if (end > at) titles.push_back(plain(part.substr(at, end - at)));
      at = end + separator.size();
    }
  };
  split(text.substr(first + mark.size(), options - first - mark.size()), ", ");
  split(text.substr(options + 10), "\n");
  return titles;
}

}  // namespace

std::vector<AgentQuestion> agent_questions(AgentSet set, const std::filesystem::path& folder) {
  const char* const name = set == AgentSet::kHotpot   ? "hotpotqa_comparison.json"
                           : set == AgentSet::kMovies ? "movie_recommendations_formatted.json"
                                                      : "parallelqa_dataset.json";
  const nlohmann::json all = nlohmann::json::parse(read_text(folder / name, kMostBytes), nullptr, false);
  if (!all.is_array()) throw Error(ErrorKind::kBadInput, fmt::format("{} is no list of questions", name));
  std::vector<AgentQuestion> questions;
  for (const auto& one : all) {
    AgentQuestion question{
        .text = one.at("question").get<std::string>(),
        .answer = one.at("answer").is_string() ? one["answer"].get<std::string>() : one["answer"].dump(),
        .branch = set == AgentSet::kParallel ? one.at("branch").get<int64_t>()
                  : set == AgentSet::kMovies ? 8
                                             : 2,
        .steps = {}};
    std::vector<std::string> names =
        set == AgentSet::kMovies ? titles_in(question.text) : names_in(question.text);
    while (static_cast<int64_t>(names.size()) < question.branch)
      names.push_back(fmt::format("subject {}", names.size() + 1));
    names.resize(static_cast<size_t>(question.branch));
    for (const std::string& subject : names)
      question.steps.push_back({.tool = "search", .argument = subject});
    if (set == AgentSet::kParallel) {  // what is said of each thing, and then of all (Fig. 6.3)
      std::string last = "max(";
      AgentStep join{.tool = "math", .argument = {}};
      for (int64_t i = 1; i <= question.branch; ++i) {
        question.steps.push_back(
            {.tool = "math", .argument = fmt::format("${} * 1.{}", i, i), .inputs = {i}});
        last += fmt::format("{}${}", i == 1 ? "" : ", ", question.branch + i);
        join.inputs.push_back(question.branch + i);
      }
      join.argument = last + ")";
      question.steps.push_back(join);
    }
    questions.push_back(std::move(question));
  }
  return questions;
}

}  // namespace verbatim::bench
