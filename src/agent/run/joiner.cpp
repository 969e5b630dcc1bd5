#include "agent/run/joiner.h"

#include <string_view>

namespace verbatim::agent {

namespace {

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

/// The place of the parenthesis that matches the one at `open`, or else of the last one, or else the end.
size_t closing(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i;
  }
  const size_t last = text.rfind(')');
  return last == std::string_view::npos || last <= open ? text.size() : last;
}

/// The place of a mark that stands where a line begins, but for blanks, or npos.
size_t find_mark(std::string_view text, std::string_view mark) {
  for (size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + 1)) {
    const size_t before = text.substr(0, at).find_last_not_of(" \t\r");
    if (before == std::string_view::npos || text[before] == '\n') return at;
  }
  return std::string_view::npos;
}

}  // namespace

std::optional<JoinerDecision> read_joiner(const std::string& reply) {
  // The first action counts: what a model writes after it, it makes up. Within a line it quotes.
  const size_t action = find_mark(reply, "Action:");
  if (action == std::string::npos) return std::nullopt;
  JoinerDecision decision;
  const std::string before = reply.substr(0, action);
  const size_t thought = find_mark(before, "Thought:");
  if (thought != std::string::npos) decision.thought = trimmed(std::string_view(before).substr(thought + 8));
  const std::string rest = trimmed(std::string_view(reply).substr(action + 7));
  decision.finish = rest.starts_with("Finish");
  if (!decision.finish && !rest.starts_with("Replan")) return std::nullopt;
  const size_t open = rest.find_first_not_of(" \t", 6);
  if (open == std::string::npos || rest[open] != '(') return std::nullopt;
  decision.text = trimmed(std::string_view(rest).substr(open + 1, closing(rest, open) - open - 1));
  return decision;
}

}  // namespace verbatim::agent
