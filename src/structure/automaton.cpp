#include "structure/automaton.h"

#include <algorithm>

#include "base/error.h"

namespace verbatim {

namespace {

/// The most ways to read a text that are followed at a time.
constexpr size_t kMostWaysAtOnce = 4096;
/// The most ways that are looked at to find the state after one byte.
constexpr size_t kMostLookedAt = size_t{1} << 16;

size_t mixed(size_t hash, size_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xFF51AFD7ED558CCDULL;
}

}  // namespace

size_t Automaton::WayHash::operator()(const Way& way) const {
  const size_t hash = mixed(static_cast<uint32_t>(way.place), static_cast<uint32_t>(way.count));
  return mixed(hash, static_cast<uint32_t>(way.parent));
}

size_t Automaton::SetHash::operator()(const std::vector<int32_t>& set) const {
  size_t hash = set.size();
  for (const int32_t each : set) hash = mixed(hash, static_cast<uint32_t>(each));
  return hash;
}

Automaton::Automaton(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) {
  forget();
}

void Automaton::forget() {
  ways_.clear();
  way_numbers_.clear();
  states_.clear();
  incomplete_.clear();
  complete_.clear();
  marks_.clear();
  sizes_.clear();
  met_.clear();
  round_ = 0;
  mask_round_ = 0;
  start_ = -1;
  bytes_ = 0;
  state_of({}, false);
  state_of({}, true);
  for (const State state : {kDead, kEnded}) states_[static_cast<size_t>(state)].after.fill(kDead);
}

void Automaton::forget(std::span<State> kept) {
  const std::vector<Way> ways = std::move(ways_);
  const std::vector<Known> states = std::move(states_);
  forget();
  std::vector<int32_t> numbers(ways.size(), kNone);
  std::vector<int32_t> stack;
  const auto again = [&](int32_t number) {
    for (; number != kNone && numbers[static_cast<size_t>(number)] == kNone;
         number = ways[static_cast<size_t>(number)].parent) {
      stack.push_back(number);
    }
    int32_t found = number == kNone ? kNone : numbers[static_cast<size_t>(number)];
    for (; !stack.empty(); stack.pop_back()) {
      const Way& at = ways[static_cast<size_t>(stack.back())];
      found = way(at.place, at.count, found);
      numbers[static_cast<size_t>(stack.back())] = found;
    }
    return found;
  };
  for (State& state : kept) {
    const Known& known = states[static_cast<size_t>(state)];
    std::vector<int32_t> set;
    for (const int32_t each : known.ways) set.push_back(again(each));
    std::sort(set.begin(), set.end());
    state = state_of(std::move(set), known.complete);
  }
}

void Automaton::begin_mask() {
  ++mask_round_;
  work_ = 0;
}

void Automaton::too_much_work() const {
  bad_input(
      "the structure is too ambiguous: to find the tokens that may come next takes too much; simplify it");
}

void Automaton::meet(State state) {
  met_[static_cast<size_t>(state)] = mask_round_;
  work_ += kStateWork * (sizes_[static_cast<size_t>(state)] + kStateWays);
}

int32_t Automaton::way(int32_t place, int32_t count, int32_t parent) {
  const int32_t depth = parent == kNone ? 0 : ways_[static_cast<size_t>(parent)].depth + 1;
  const Way wanted{place, count, parent, depth};
  const auto [found, made] = way_numbers_.try_emplace(wanted, static_cast<int32_t>(ways_.size()));
  if (made) {
    constexpr size_t kBytes = sizeof(Way) * 3 + 64;
    ways_.push_back(wanted);
    marks_.push_back(0);
    bytes_ += kBytes;
  }
  return found->second;
}

/// Adds a way to the set that is being found, if the text can be brought to an end on it.
void Automaton::reach(int32_t place, int32_t count, int32_t parent) {
  const int32_t depth = parent == kNone ? 0 : ways_[static_cast<size_t>(parent)].depth + 1;
  const int32_t need = grammar_->need[static_cast<size_t>(place)];
  if (need == Grammar::kImpossible || depth + need > Grammar::kDeepest) return;
  const int32_t number = way(place, count, parent);
  uint32_t& mark = marks_[static_cast<size_t>(number)];
  if (mark == round_) return;
  mark = round_;
  if (++looked_at_ > kMostLookedAt) {
    bad_input("the structure is too ambiguous: a text can be read in more than {} ways; simplify it",
              kMostLookedAt);
  }
  open_.push_back(number);
}

/// Follows all ways of the set that is being found to where they wait for a byte or a token.
void Automaton::expand() {
  while (!open_.empty()) {
    const int32_t number = open_.back();
    open_.pop_back();
    const Way at = ways_[static_cast<size_t>(number)];
    const Place& place = grammar_->places[static_cast<size_t>(at.place)];
    switch (place.kind) {
      case Place::Kind::kBytes:
      case Place::Kind::kToken:
        reached_.push_back(number);
        break;
      case Place::Kind::kReturn: {
        if (at.parent == kNone) {
          ended_ = true;
          break;
        }
        const Way& parent = ways_[static_cast<size_t>(at.parent)];
        reach(parent.place, parent.count, parent.parent);
        break;
      }
      case Place::Kind::kCall: {
        // Returning to a return is returning: this keeps the stack of a rule that ends by calling itself
        // flat.
        const int32_t back = place.next == Grammar::kReturn ? at.parent : way(place.next, 0, at.parent);
        reach(grammar_->rules[static_cast<size_t>(place.a)], 0, back);
        break;
      }
      case Place::Kind::kSplit:
        for (int32_t i = 0; i < place.next; ++i) {
          reach(grammar_->targets[static_cast<size_t>(place.a + i)], 0, at.parent);
        }
        break;
      case Place::Kind::kLoop:
        if (place.loop >= 0) {
          reached_.push_back(number);
        } else {
          reach(place.a, 0, at.parent);
        }
        reach(place.next, 0, at.parent);
        break;
      case Place::Kind::kCount:
        if (place.most < 0 || at.count < place.most) {
          if (place.loop >= 0) {
            // step() is one deeper within the class.
            const int32_t need = grammar_->need[static_cast<size_t>(place.a)];
            if (at.depth + 1 + need <= Grammar::kDeepest) reached_.push_back(number);
          } else {
            // Without an upper limit only the lower one is worth counting for.
            const int32_t count = place.most < 0 ? std::min(at.count + 1, place.least) : at.count + 1;
            reach(place.a, 0, way(at.place, count, at.parent));
          }
        }
        if (at.count >= place.least) reach(place.next, 0, at.parent);
        break;
    }
  }
}

/// The state of the ways that expand() has reached.
Automaton::State Automaton::state_reached() {
  if (reached_.size() > kMostWaysAtOnce) {
    bad_input("the structure is too ambiguous: a text can be read in more than {} ways; simplify it",
              kMostWaysAtOnce);
  }
  std::sort(reached_.begin(), reached_.end());
  return state_of(reached_, ended_);
}

Automaton::State Automaton::state_of(std::vector<int32_t> ways, bool complete) {
  auto& numbers = complete ? complete_ : incomplete_;
  const auto [found, made] = numbers.try_emplace(std::move(ways), static_cast<State>(states_.size()));
  if (made) {
    Known& known = states_.emplace_back();
    known.ways = found->first;
    known.complete = complete;
    known.after.fill(-1);
    sizes_.push_back(static_cast<uint32_t>(known.ways.size()));
    met_.push_back(0);
    bytes_ += sizeof(Known) + 256 + 2 * sizeof(int32_t) * known.ways.size();
  }
  return found->second;
}

void Automaton::begin_set() {
  ++round_;
  looked_at_ = 0;
  ended_ = false;
  open_.clear();
  reached_.clear();
}

Automaton::State Automaton::start() {
  if (start_ >= 0) return start_;
  begin_set();
  reach(grammar_->start, 0, kNone);
  expand();
  start_ = state_reached();
  return start_;
}

/// Adds what follows a byte on one way to the set that is being found.
void Automaton::step(int32_t number, uint8_t byte) {
  const Way at = ways_[static_cast<size_t>(number)];
  const Place& place = grammar_->places[static_cast<size_t>(at.place)];
  if (place.kind == Place::Kind::kBytes) {
    if (grammar_->sets[static_cast<size_t>(place.a)].test(byte)) reach(place.next, 0, at.parent);
    return;
  }
  if (place.kind == Place::Kind::kToken) return;
  // A class of characters: its body begins with splits of bytes alone.
  int32_t back = at.parent;
  if (place.kind == Place::Kind::kCount) {
    const int32_t count = place.most < 0 ? std::min(at.count + 1, place.least) : at.count + 1;
    back = way(at.place, count, at.parent);
  }
  const auto enter = [&](const auto& self, int32_t body) -> void {
    const Place& inside = grammar_->places[static_cast<size_t>(body)];
    if (inside.kind == Place::Kind::kBytes) {
      if (grammar_->sets[static_cast<size_t>(inside.a)].test(byte)) reach(inside.next, 0, back);
    } else if (inside.kind == Place::Kind::kSplit) {
      for (int32_t i = 0; i < inside.next; ++i) {
        self(self, grammar_->targets[static_cast<size_t>(inside.a + i)]);
      }
    }
  };
  enter(enter, place.a);
}

Automaton::State Automaton::find_after(State state, uint8_t byte) {
  begin_set();
  // A copy, as new states move the old ones.
  const std::vector<int32_t> ways = states_[static_cast<size_t>(state)].ways;
  for (const int32_t each : ways) step(each, byte);
  expand();
  const State found = state_reached();
  states_[static_cast<size_t>(state)].after[byte] = found;
  return found;
}

Automaton::State Automaton::after_token(State state, int32_t token) {
  begin_set();
  const std::vector<int32_t> ways = states_[static_cast<size_t>(state)].ways;
  for (const int32_t each : ways) {
    const Way at = ways_[static_cast<size_t>(each)];
    const Place& place = grammar_->places[static_cast<size_t>(at.place)];
    if (place.kind == Place::Kind::kToken && place.a == token) reach(place.next, 0, at.parent);
  }
  expand();
  return state_reached();
}

ByteSet Automaton::bytes(State state) const {
  ByteSet all;
  const auto add = [&](const auto& self, int32_t number) -> void {
    const Place& place = grammar_->places[static_cast<size_t>(number)];
    if (place.kind == Place::Kind::kBytes) {
      if (grammar_->need[static_cast<size_t>(number)] != Grammar::kImpossible) {
        all |= grammar_->sets[static_cast<size_t>(place.a)];
      }
    } else if (place.kind == Place::Kind::kSplit) {
      for (int32_t i = 0; i < place.next; ++i) {
        self(self, grammar_->targets[static_cast<size_t>(place.a + i)]);
      }
    } else if (place.kind == Place::Kind::kCount || place.kind == Place::Kind::kLoop) {
      self(self, place.a);
    }
  };
  for (const int32_t each : states_[static_cast<size_t>(state)].ways) {
    add(add, ways_[static_cast<size_t>(each)].place);
  }
  return all;
}

std::vector<int32_t> Automaton::tokens(State state) const {
  std::vector<int32_t> found;
  for (const int32_t each : states_[static_cast<size_t>(state)].ways) {
    const Place& place = grammar_->places[static_cast<size_t>(ways_[static_cast<size_t>(each)].place)];
    if (place.kind == Place::Kind::kToken) found.push_back(place.a);
  }
  return found;
}

std::vector<Automaton::Loop> Automaton::loops(State state, State& rest) {
  std::vector<Loop> found;
  std::vector<int32_t> others;
  const std::vector<int32_t> ways = states_[static_cast<size_t>(state)].ways;
  for (const int32_t each : ways) {
    const Way& at = ways_[static_cast<size_t>(each)];
    const Place& place = grammar_->places[static_cast<size_t>(at.place)];
    if (place.loop < 0 || (place.kind != Place::Kind::kCount && place.kind != Place::Kind::kLoop)) {
      others.push_back(each);
      continue;
    }
    const bool counted = place.kind == Place::Kind::kCount && place.most >= 0;
    found.push_back({.characters = place.loop,
                     .most = counted ? int64_t{place.most} - at.count : -1,
                     .alone = state_of({each}, false)});
  }
  rest = found.empty() ? state : state_of(std::move(others), false);
  return found;
}

}  // namespace verbatim
