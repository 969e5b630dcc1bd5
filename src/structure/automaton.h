#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "structure/grammar.h"

namespace verbatim {

/// Reads texts of a grammar byte by byte. A state is the set of all ways in which the text so far can be
/// read, each of them a place in the grammar and a stack of the places to return to. Equal sets are one
/// state, and states and the ways from one to another are kept, so that reading a byte is a look-up when it
/// happened before. Not for several threads at once.
class Automaton {
 public:
  using State = int32_t;
  static constexpr State kDead = 0;   ///< the text cannot become one of the grammar
  static constexpr State kEnded = 1;  ///< the text is one of the grammar, and nothing can follow

  explicit Automaton(std::shared_ptr<const Grammar> grammar);

  State start();
  /// The state after a byte. Throws Error(kBadInput) when the ways to read the text are too many.
  State after(State state, uint8_t byte) {
    const State known = states_[static_cast<size_t>(state)].after[byte];
    return known >= 0 ? known : find_after(state, byte);
  }
  /// The state after a special token.
  State after_token(State state, int32_t token);
  /// Whether the text so far is one of the grammar.
  bool complete(State state) const { return states_[static_cast<size_t>(state)].complete; }

  /// The bytes that may follow.
  ByteSet bytes(State state) const;
  /// The special tokens that may follow, in no order.
  std::vector<int32_t> tokens(State state) const;

  /// A way to read the text that stands in a class of characters, any of which leads back to there.
  struct Loop {
    int32_t characters = 0;  ///< the class: an index into Grammar::loops
    int64_t most = 0;        ///< how many characters of the class may follow; -1: without end
    State alone = kDead;     ///< the state in which this is the only way
  };
  /// The ways of a state that stand in classes of characters, and the state of all others in `rest`.
  std::vector<Loop> loops(State state, State& rest);

  /// Begins to count the work of a mask anew.
  void begin_mask();
  /// The state after a byte, as after() gives it, counted as work of the mask. Throws Error(kBadInput) when
  /// the mask is too much work; whether it is depends on the state it begins with and the bytes alone, not on
  /// what is remembered.
  State after_in_mask(State state, uint8_t byte) {
    work_ += sizes_[static_cast<size_t>(state)];
    const State found = after(state, byte);
    if (met_[static_cast<size_t>(found)] != mask_round_) meet(found);
    if (work_ > kMostWork) too_much_work();
    return found;
  }

  /// What the states take, roughly, in bytes.
  size_t memory() const { return bytes_; }
  /// Forgets all states but kDead and kEnded: their numbers mean nothing any more.
  void forget();
  /// Forgets all states but kDead, kEnded and those given, and replaces their numbers by the new ones.
  void forget(std::span<State> kept);

  const Grammar& grammar() const { return *grammar_; }

 private:
  /// A place with a stack. Equal ones have one number, by which the stack refers to them.
  struct Way {
    int32_t place;
    int32_t count;   // of kCount: the rounds so far
    int32_t parent;  // the way to go on with at a return; kNone: the end of the text
    int32_t depth;   // the number of parents
    bool operator==(const Way& other) const {
      return place == other.place && count == other.count && parent == other.parent;
    }
  };
  struct WayHash {
    size_t operator()(const Way& way) const;
  };
  struct SetHash {
    size_t operator()(const std::vector<int32_t>& set) const;
  };
  struct Known {
    std::vector<int32_t> ways;  // sorted
    bool complete = false;
    std::array<State, 256> after;  // -1: not known yet
  };
  static constexpr int32_t kNone = -1;
  /// The most work of one mask, counted in ways: those of every state that a byte is read in, and for a state
  /// that was not met before in that mask kStateWork for each of its ways and for kStateWays more. It stands
  /// for a few seconds at most, and for some 128 MiB of states.
  static constexpr size_t kMostWork = size_t{1} << 26;
  static constexpr size_t kStateWork = 64;
  static constexpr size_t kStateWays = 11;

  int32_t way(int32_t place, int32_t count, int32_t parent);
  /// Begins to find another set of ways.
  void begin_set();
  void reach(int32_t place, int32_t count, int32_t parent);
  void meet(State state);
  [[noreturn]] void too_much_work() const;
  void expand();
  void step(int32_t way, uint8_t byte);
  State state_reached();
  State find_after(State state, uint8_t byte);
  State state_of(std::vector<int32_t> ways, bool complete);

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Way> ways_;
  std::unordered_map<Way, int32_t, WayHash> way_numbers_;
  std::vector<Known> states_;
  std::vector<uint32_t> sizes_;  // by state: the number of its ways
  std::vector<uint32_t> met_;    // by state: the mask in which it was met last
  uint32_t mask_round_ = 0;
  size_t work_ = 0;   // of the mask that is being found
  size_t bytes_ = 0;  // of ways and states, roughly
  std::unordered_map<std::vector<int32_t>, State, SetHash> incomplete_;
  std::unordered_map<std::vector<int32_t>, State, SetHash> complete_;
  // Of the set that is being found:
  std::vector<int32_t> open_;     // ways whose places are not looked at yet
  std::vector<int32_t> reached_;  // ways that wait for a byte or a token
  std::vector<uint32_t> marks_;   // by way: the round in which it was reached last
  uint32_t round_ = 0;
  size_t looked_at_ = 0;
  bool ended_ = false;
  State start_ = -1;
};

}  // namespace verbatim
