#include "structure/grammar.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "structure/grammar_builder.h"
#include "structure/utf8_ranges.h"

namespace verbatim {

namespace {

constexpr size_t kMostPlaces = size_t{1} << 18;
/// The most special tokens and classes of characters of their own that a grammar may have.
constexpr size_t kMostLoops = 64;

ByteSet byte_range(int first, int last) {
  ByteSet set;
  for (int byte = first; byte <= last; ++byte) set.set(static_cast<size_t>(byte));
  return set;
}

ByteSet bytes_of(std::string_view characters) {
  ByteSet set;
  for (const char c : characters) set.set(static_cast<unsigned char>(c));
  return set;
}

/// The ASCII characters that cannot stand for themselves in a JSON string.
ByteSet json_lacking() {
  ByteSet set = byte_range(0, 0x1F);
  set.set('"');
  set.set('\\');
  return set;
}

/// Whether a character cannot stand for itself in a JSON string.
bool json_escapes(uint32_t character) {
  return character < 0x80 && json_lacking().test(character);
}

}  // namespace

int32_t GrammarBuilder::add(const Place& place) {
  if (grammar_.places.size() >= kMostPlaces || grammar_.targets.size() >= 4 * kMostPlaces) {
    bad_input("{}the structure is too large: more than {} places in its grammar; simplify it", where_,
              kMostPlaces);
  }
  grammar_.places.push_back(place);
  return static_cast<int32_t>(grammar_.places.size()) - 1;
}

int32_t GrammarBuilder::bytes(const ByteSet& set, int32_t next) {
  const auto [found, made] = sets_made_.try_emplace(set, static_cast<int32_t>(grammar_.sets.size()));
  if (made) grammar_.sets.push_back(set);
  return add({.kind = Place::Kind::kBytes, .a = found->second, .next = next});
}

int32_t GrammarBuilder::split(std::vector<int32_t> targets) {
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  if (targets.size() == 1) return targets.front();
  const auto first = static_cast<int32_t>(grammar_.targets.size());
  grammar_.targets.insert(grammar_.targets.end(), targets.begin(), targets.end());
  return add({.kind = Place::Kind::kSplit, .a = first, .next = static_cast<int32_t>(targets.size())});
}

int32_t GrammarBuilder::text(std::string_view text, int32_t next) {
  for (size_t i = text.size(); i > 0; --i) {
    const auto byte = static_cast<unsigned char>(text[i - 1]);
    const auto [found, made] = bytes_made_.try_emplace({byte, byte, next}, 0);
    if (made) found->second = bytes(byte_range(byte, byte), next);
    next = found->second;
  }
  return next;
}

/// Any of sorted texts, of which all have the same first `depth` bytes, from there on.
int32_t GrammarBuilder::texts(std::span<const std::string> sorted, size_t depth, int32_t next) {
  std::vector<int32_t> targets;
  size_t i = 0;
  while (i < sorted.size() && sorted[i].size() == depth) ++i;
  if (i > 0) targets.push_back(next);
  while (i < sorted.size()) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end][depth] == sorted[i][depth]) ++end;
    const auto group = sorted.subspan(i, end - i);
    // What the first and the last have in common, all have.
    size_t common = depth + 1;
    const std::string& first = group.front();
    const std::string& last = group.back();
    while (common < first.size() && common < last.size() && first[common] == last[common]) ++common;
    const int32_t rest = group.size() == 1 ? text(first.substr(common), next) : texts(group, common, next);
    targets.push_back(text(std::string_view(first).substr(depth, common - depth), rest));
    i = end;
  }
  return split(std::move(targets));
}

int32_t GrammarBuilder::characters(std::span<const CharacterRange> ranges, int32_t next) {
  ByteSet single;
  std::vector<int32_t> targets;
  for (const ByteRanges& sequence : utf8_ranges(ranges)) {
    if (sequence.length == 1) {
      single |= byte_range(sequence.range[0].first, sequence.range[0].last);
      continue;
    }
    int32_t place = next;
    for (int32_t i = sequence.length - 1; i >= 0; --i) {
      const ByteRanges::Range range = sequence.range[static_cast<size_t>(i)];
      const auto [found, made] = bytes_made_.try_emplace({range.first, range.last, place}, 0);
      if (made) found->second = bytes(byte_range(range.first, range.last), place);
      place = found->second;
    }
    targets.push_back(place);
  }
  if (single.any()) targets.push_back(bytes(single, next));
  return split(std::move(targets));
}

int32_t GrammarBuilder::json_characters(std::span<const CharacterRange> ranges, int32_t next) {
  std::vector<CharacterRange> raw;
  std::vector<std::string> escaped;
  for (const CharacterRange& range : ranges) {
    uint32_t first = range.first;
    for (uint32_t c = range.first; c <= range.last && c < 0x80; ++c) {
      if (!json_escapes(c)) continue;
      if (first < c) raw.push_back({first, c - 1});
      first = c + 1;
      escaped.push_back(json_escaped(std::string(1, static_cast<char>(c))));
    }
    if (first <= range.last) raw.push_back({first, range.last});
  }
  std::sort(escaped.begin(), escaped.end());
  return split({characters(raw, next), texts(escaped, 0, next)});
}

/// The two escapes of a character beyond U+FFFF after their first backslash and `u`.
int32_t GrammarBuilder::surrogate_pair(int32_t next) {
  const ByteSet hex = bytes_of("0123456789abcdefABCDEF");
  int32_t place = bytes(hex, bytes(hex, next));
  place = text("\\u", bytes(bytes_of("dD"), bytes(bytes_of("cdefCDEF"), place)));
  return bytes(bytes_of("dD"), bytes(bytes_of("89abAB"), bytes(hex, bytes(hex, place))));
}

int32_t GrammarBuilder::json_string(const Node& node, int32_t next) {
  constexpr int32_t kEnd = Grammar::kReturn;
  const ByteSet hex = bytes_of("0123456789abcdefABCDEF");
  const int32_t two = bytes(hex, bytes(hex, kEnd));
  const int32_t code = split({bytes(bytes_of("0123456789abcefABCEF"), bytes(hex, two)),
                              bytes(bytes_of("dD"), bytes(bytes_of("01234567"), two)), surrogate_pair(kEnd)});
  const int32_t escape = split({bytes(bytes_of("\"\\/bfnrt"), kEnd), text("u", code)});
  const CharacterRange all[] = {{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, kLastCharacter}};
  const int32_t body = split({characters(all, kEnd), text("\\", escape)});
  return counted(body, node.least, node.most, next, loop_class(json_lacking()));
}

/// The class of all characters but those below 128 that are named.
int32_t GrammarBuilder::loop_class(const ByteSet& lacking) {
  const auto found = std::find(grammar_.loops.begin(), grammar_.loops.end(), lacking);
  const auto index = static_cast<int32_t>(found - grammar_.loops.begin());
  if (found != grammar_.loops.end()) return index;
  if (grammar_.loops.size() >= kMostLoops) return -1;
  grammar_.loops.push_back(lacking);
  return index;
}

/// The class of a node that is one character, if every character beyond ASCII is among them.
std::optional<int32_t> GrammarBuilder::loop_of(const Node& node) {
  if (node.kind != Node::Kind::kCharacter) return std::nullopt;
  const std::vector<CharacterRange> ranges = joined(node.ranges);
  if (ranges.empty() || ranges.back().first > 0x80 || ranges.back().last < kLastCharacter) {
    return std::nullopt;
  }
  ByteSet lacking;
  for (uint32_t c = 0; c < 0x80; ++c) {
    if (!has_character(ranges, c) || (node.json && json_escapes(c))) lacking.set(c);
  }
  return loop_class(lacking);
}

int32_t GrammarBuilder::counted(int32_t body, int32_t least, int32_t most, int32_t next, int32_t loop) {
  return add(
      {.kind = Place::Kind::kCount, .a = body, .next = next, .least = least, .most = most, .loop = loop});
}

int32_t GrammarBuilder::repeat(const Node& node, int32_t next) {
  if (node.most >= 0 && node.least > node.most) return split({});
  if (node.most == 0) return next;
  NodePointer part = node.parts[0];
  int32_t least = node.least;
  if (allows_empty(*part)) {
    if (!node.text.empty()) {
      bad_input("{}a repeated structure may be empty and has a separator: repeat one that is not empty",
                where_);
    }
    part = own_.emplace_back(without_empty(part));
    least = 0;
  }
  if (node.text.empty()) {
    if (node.most == 1) {
      const int32_t once = compile(*part, next);
      return least == 1 ? once : split({once, next});
    }
    const int32_t loop = loop_of(*part).value_or(-1);
    return counted(compile(*part, Grammar::kReturn), least, node.most, next, loop);
  }
  int32_t rest = next;
  if (node.most != 1) {
    const int32_t body = text(node.text, compile(*part, Grammar::kReturn));
    rest = counted(body, std::max(least - 1, 0), node.most < 0 ? -1 : node.most - 1, next, -1);
  }
  const int32_t first = compile(*part, rest);
  return least == 0 ? split({first, next}) : first;
}

int32_t GrammarBuilder::members(const Node& node, int32_t next) {
  // Places behind the parts made so far, where nothing came before (no separator) and where something did.
  int32_t first = next;
  int32_t later = next;
  if (node.extra != nullptr) {
    later = counted(text(node.text, compile(*node.extra, Grammar::kReturn)), 0, -1, next, -1);
    first = split({compile(*node.extra, later), next});
  }
  for (size_t i = node.parts.size(); i > 0; --i) {
    const int32_t part = compile(*node.parts[i - 1], later);
    const int32_t separated = text(node.text, part);
    const bool required = node.required[i - 1] != 0;
    first = required ? part : split({part, first});
    later = required ? separated : split({separated, later});
  }
  return first;
}

int32_t GrammarBuilder::rule(int32_t index) {
  const auto [found, made] =
      rules_.try_emplace({rules_node_, index}, static_cast<int32_t>(grammar_.rules.size()));
  if (made) {
    grammar_.rules.push_back(Grammar::kReturn);
    open_.emplace_back(rules_node_, index);
  }
  return found->second;
}

int32_t GrammarBuilder::compile(const Node& node, int32_t next) {
  if (node.kind == Node::Kind::kText) return text(node.text, next);
  const auto key = std::make_pair(&node, next);
  const auto found = made_.find(key);
  if (found != made_.end()) return found->second;
  const int32_t place = make(node, next);
  made_[key] = place;
  return place;
}

int32_t GrammarBuilder::make(const Node& node, int32_t next) {
  switch (node.kind) {
    case Node::Kind::kText:
      return text(node.text, next);
    case Node::Kind::kTexts: {
      std::vector<std::string> sorted = node.texts;
      std::sort(sorted.begin(), sorted.end());
      return texts(sorted, 0, next);
    }
    case Node::Kind::kCharacter:
      return node.json ? json_characters(node.ranges, next) : characters(node.ranges, next);
    case Node::Kind::kJsonString:
      return json_string(node, next);
    case Node::Kind::kFreeText:
      return free_text(node, next);
    case Node::Kind::kSpecial: {
      const std::optional<int32_t> token = (*find_special_)(node.text);
      if (!token) return text(node.text, next);
      return add({.kind = Place::Kind::kToken, .a = *token, .next = next});
    }
    case Node::Kind::kSequence:
      for (size_t i = node.parts.size(); i > 0; --i) next = compile(*node.parts[i - 1], next);
      return next;
    case Node::Kind::kChoice: {
      std::vector<int32_t> targets;
      for (const NodePointer& part : node.parts) targets.push_back(compile(*part, next));
      return split(std::move(targets));
    }
    case Node::Kind::kRepeat:
      return repeat(node, next);
    case Node::Kind::kMembers:
      return members(node, next);
    case Node::Kind::kRules: {
      const Node* const outer = std::exchange(rules_node_, &node);
      const int32_t place = compile(*node.parts[0], next);
      rules_node_ = outer;
      return place;
    }
    case Node::Kind::kReference:
      break;
  }
  return add({.kind = Place::Kind::kCall, .a = rule(node.least), .next = next});
}

namespace {

/// Calls `use` with every place that the need of a place follows from.
template <typename Use>
void for_each_source(const Grammar& grammar, const Place& place, Use use) {
  switch (place.kind) {
    case Place::Kind::kReturn:
      return;
    case Place::Kind::kBytes:
    case Place::Kind::kToken:
      return use(place.next);
    case Place::Kind::kCall:
      use(grammar.rules[static_cast<size_t>(place.a)]);
      return use(place.next);
    case Place::Kind::kCount:
      if (place.least > 0) use(place.a);
      return use(place.next);
    case Place::Kind::kLoop:
      use(place.a);
      return use(place.next);
    case Place::Kind::kSplit:
      for (int32_t i = 0; i < place.next; ++i) use(grammar.targets[static_cast<size_t>(place.a + i)]);
      return;
  }
}

/// What a place needs, given what the others need.
int32_t need_of(const Grammar& grammar, const Place& place) {
  const auto at = [&](int32_t other) { return grammar.need[static_cast<size_t>(other)]; };
  switch (place.kind) {
    case Place::Kind::kReturn:
      return 0;
    case Place::Kind::kBytes:
      return grammar.sets[static_cast<size_t>(place.a)].any() ? at(place.next) : Grammar::kImpossible;
    case Place::Kind::kToken:
      return at(place.next);
    case Place::Kind::kCall: {
      // A rule that is called last takes the place of the one that calls it.
      const int32_t rule = at(grammar.rules[static_cast<size_t>(place.a)]);
      return place.next == Grammar::kReturn ? rule : std::max(rule + 1, at(place.next));
    }
    case Place::Kind::kCount:
      return place.least == 0 ? at(place.next) : std::max(at(place.a) + 1, at(place.next));
    case Place::Kind::kLoop:
    case Place::Kind::kSplit:
      break;
  }
  int32_t least = Grammar::kImpossible;
  for_each_source(grammar, place, [&](int32_t other) { least = std::min(least, at(other)); });
  return least;
}

}  // namespace

/// Computes Grammar::need: the least solution. It is found in the order of the needs, so that what is found
/// first for a place is the least.
void GrammarBuilder::measure() {
  const size_t n = grammar_.places.size();
  // The places whose need follows from that of a place are users[first[place]] to users[first[place + 1]].
  std::vector<size_t> first(n + 2, 0);
  for (const Place& place : grammar_.places) {
    for_each_source(grammar_, place, [&](int32_t other) { ++first[static_cast<size_t>(other) + 2]; });
  }
  for (size_t i = 2; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<int32_t> users(first.back());
  for (size_t i = 0; i < n; ++i) {
    for_each_source(grammar_, grammar_.places[i], [&](int32_t other) {
      users[first[static_cast<size_t>(other) + 1]++] = static_cast<int32_t>(i);
    });
  }
  grammar_.need.assign(n, Grammar::kImpossible);
  grammar_.need[Grammar::kReturn] = 0;
  std::vector<std::vector<int32_t>> found = {{Grammar::kReturn}};  // by need
  for (size_t level = 0; level < found.size(); ++level) {
    for (size_t i = 0; i < found[level].size(); ++i) {
      const auto place = static_cast<size_t>(found[level][i]);
      for (size_t u = first[place]; u < first[place + 1]; ++u) {
        int32_t& need = grammar_.need[static_cast<size_t>(users[u])];
        if (need != Grammar::kImpossible) continue;
        const int32_t known = need_of(grammar_, grammar_.places[static_cast<size_t>(users[u])]);
        if (known >= Grammar::kImpossible) continue;
        need = known;
        found.resize(std::max(found.size(), static_cast<size_t>(known) + 1));
        found[static_cast<size_t>(known)].push_back(users[u]);
      }
    }
  }
}

Grammar GrammarBuilder::build(const Structure::Node& node) {
  grammar_.start = compile(node, Grammar::kReturn);
  while (!open_.empty()) {
    const Rule next = open_.front();
    open_.pop_front();
    const auto index = static_cast<size_t>(next.second);
    rules_node_ = next.first;
    where_ = index < rules_node_->texts.size() ? rules_node_->texts[index] + ": " : "";
    const auto number = static_cast<size_t>(rules_.at(next));
    grammar_.rules[number] = compile(*rules_node_->parts[index], Grammar::kReturn);
    rule_places_.resize(std::max(rule_places_.size(), number + 1));
    rule_places_[number] = where_;
  }
  measure();
  if (grammar_.need[static_cast<size_t>(grammar_.start)] == Grammar::kImpossible) {
    std::string where;
    for (size_t i = 0; i < grammar_.rules.size() && where.empty(); ++i) {
      const auto entry = static_cast<size_t>(grammar_.rules[i]);
      if (grammar_.need[entry] == Grammar::kImpossible) where = rule_places_[i];
    }
    bad_input("{}no text fits the structure; it must allow one", where);
  }
  if (grammar_.need[static_cast<size_t>(grammar_.start)] > Grammar::kDeepest) {
    bad_input("every text of the structure nests deeper than {} rules; make it flatter", Grammar::kDeepest);
  }
  return std::move(grammar_);
}

Grammar make_grammar(const Structure::Node& node, const FindSpecial& find_special) {
  return GrammarBuilder(find_special).build(node);
}

}  // namespace verbatim
