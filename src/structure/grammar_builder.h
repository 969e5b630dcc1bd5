#pragma once

#include <deque>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>

#include "structure/grammar.h"

namespace verbatim {

/// Builds a grammar from the end of each rule to its beginning: every part is made with the place that comes
/// after it, so that parts with the same continuation are made once.
class GrammarBuilder {
 public:
  explicit GrammarBuilder(const FindSpecial& find_special) : find_special_(&find_special) {
    grammar_.places.emplace_back();
  }
  Grammar build(const Structure::Node& node);

 private:
  using Node = Structure::Node;
  /// A rule: the node of kind kRules, and the index of one of its parts.
  using Rule = std::pair<const Node*, int32_t>;

  int32_t add(const Place& place);
  int32_t bytes(const ByteSet& set, int32_t next);
  int32_t split(std::vector<int32_t> targets);
  int32_t text(std::string_view text, int32_t next);
  int32_t texts(std::span<const std::string> sorted, size_t depth, int32_t next);
  int32_t characters(std::span<const CharacterRange> ranges, int32_t next);
  int32_t json_characters(std::span<const CharacterRange> ranges, int32_t next);
  int32_t json_string(const Node& node, int32_t next);
  int32_t free_text(const Node& node, int32_t next);
  int32_t repeat(const Node& node, int32_t next);
  int32_t counted(int32_t body, int32_t least, int32_t most, int32_t next, int32_t loop);
  int32_t members(const Node& node, int32_t next);
  int32_t make(const Node& node, int32_t next);
  int32_t compile(const Node& node, int32_t next);
  int32_t rule(int32_t index);
  int32_t loop_class(const ByteSet& lacking);
  std::optional<int32_t> loop_of(const Node& node);
  int32_t surrogate_pair(int32_t next);
  void measure();

  Grammar grammar_;
  const FindSpecial* find_special_;
  const Node* rules_node_ = nullptr;  // of what is being made
  std::string where_;                 // the place in the schema of what is being made
  std::map<std::pair<const Node*, int32_t>, int32_t> made_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> bytes_made_;  // by first byte, last byte, next
  std::unordered_map<ByteSet, int32_t> sets_made_;                       // by set: its index
  std::deque<NodePointer> own_;                                          // nodes made on the way
  std::map<Rule, int32_t> rules_;
  std::deque<Rule> open_;  // rules that are referred to and not made yet
  std::vector<std::string> rule_places_;
};

}  // namespace verbatim
