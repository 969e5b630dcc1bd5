#include <algorithm>
#include <deque>
#include <map>

#include "base/error.h"
#include "base/utf8.h"
#include "structure/grammar_builder.h"
#include "structure/utf8_ranges.h"

namespace verbatim {

namespace {

/// Finds strings in a text character by character (Aho and Corasick): a state is the longest beginning of a
/// string that the text so far ends with.
struct StringSearch {
  struct State {
    std::map<uint32_t, int32_t> next;  ///< by character; all others lead to state 0
    int32_t fallback = 0;
    bool found = false;  ///< the text so far ends with one of the strings
  };
  std::vector<State> states = std::vector<State>(1);

  void add(std::string_view text) {
    int32_t at = 0;
    for (size_t i = 0; i < text.size(); i += utf8_length(text[i])) {
      const auto size = static_cast<int32_t>(states.size());
      const auto [found, made] =
          states[static_cast<size_t>(at)].next.try_emplace(utf8_character(text, i), size);
      at = found->second;
      if (made) states.emplace_back();
    }
    states[static_cast<size_t>(at)].found = true;
  }

  /// Completes the states' `next` with what their fallbacks know. Says false when that becomes too much.
  bool complete() {
    constexpr size_t kMostWays = size_t{1} << 17;
    size_t ways = 0;
    std::deque<int32_t> open;
    for (const auto& [character, next] : states[0].next) open.push_back(next);
    while (!open.empty()) {
      State& state = states[static_cast<size_t>(open.front())];
      open.pop_front();
      const State& fallback = states[static_cast<size_t>(state.fallback)];
      state.found = state.found || fallback.found;
      for (const auto& [character, next] : state.next) {
        const auto known = fallback.next.find(character);
        if (known != fallback.next.end()) states[static_cast<size_t>(next)].fallback = known->second;
        open.push_back(next);
      }
      state.next.insert(fallback.next.begin(), fallback.next.end());
      ways += state.next.size();
      if (ways > kMostWays) return false;
    }
    return true;
  }
};

}  // namespace

int32_t GrammarBuilder::free_text(const Node& node, int32_t next) {
  constexpr size_t kMostCharacters = 4096;
  StringSearch search;
  for (const std::string& text : node.texts) {
    search.add(text);
    if (search.states.size() > kMostCharacters) break;
  }
  if (search.states.size() > kMostCharacters || !search.complete()) {
    bad_input("{}the strings that free text must not contain are too many or too long; use fewer", where_);
  }
  ByteSet lacking;
  bool ascii = true;
  for (const auto& [character, state] : search.states[0].next) {
    if (character < 0x80) {
      lacking.set(character);
    } else {
      ascii = false;
    }
  }
  // The places of the states refer to each other, so that they are there before what follows them.
  std::vector<int32_t> places;
  for (size_t i = 0; i < search.states.size(); ++i) {
    places.push_back(add({.kind = Place::Kind::kLoop, .next = next}));
  }
  for (size_t i = 0; i < search.states.size(); ++i) {
    const StringSearch::State& state = search.states[i];
    std::vector<CharacterRange> named;
    std::vector<int32_t> targets;
    for (const auto& [character, target] : state.next) {
      named.push_back({character, character});
      if (search.states[static_cast<size_t>(target)].found) continue;
      const CharacterRange one[] = {named.back()};
      targets.push_back(characters(one, places[static_cast<size_t>(target)]));
    }
    targets.push_back(characters(complement(joined(named)), places[0]));
    const int32_t body = split(std::move(targets));
    grammar_.places[static_cast<size_t>(places[i])].a = body;
  }
  if (ascii) grammar_.places[static_cast<size_t>(places[0])].loop = loop_class(lacking);
  return places[0];
}

}  // namespace verbatim
