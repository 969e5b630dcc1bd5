#include "structure/compiled_structure.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace verbatim {

namespace {

using State = Automaton::State;

/// What a structure remembers at most, in bytes, of states and of masks.
constexpr size_t kMostStateBytes = size_t{48} << 20;
constexpr size_t kMostMaskBytes = size_t{32} << 20;
/// The structures that are remembered for a model.
constexpr size_t kMostStructures = 16;
/// How much of a text that alone can follow is looked at, in bytes.
constexpr size_t kLongestForced = 256;

bool holds(std::span<const int32_t> tokens, int32_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

void merge(const TokenBits& from, TokenBits& into) {
  for (size_t i = 0; i < into.size(); ++i) into[i] |= from[i];
}

}  // namespace

CompiledStructure::CompiledStructure(const Structure::Node& node,
                                     std::shared_ptr<const StructureVocabulary> vocabulary)
    : vocabulary_(std::move(vocabulary)),
      automaton_(std::make_shared<const Grammar>(
          make_grammar(node, [this](std::string_view spelling) { return vocabulary_->special(spelling); }))) {
  classes_.resize(automaton_.grammar().loops.size());
}

/// The state after a token. A token that ends the sequence may end a complete text; where the text has a
/// special token of that name, it is that.
State CompiledStructure::after(State state, int32_t token, std::span<const int32_t> ends) {
  if (state == Automaton::kDead || token < 0 || token >= vocabulary_->size()) return Automaton::kDead;
  const std::string_view text = vocabulary_->text(token);
  if (holds(ends, token)) {
    const State special = text.empty() ? automaton_.after_token(state, token) : Automaton::kDead;
    if (special != Automaton::kDead) return special;
    return automaton_.complete(state) ? Automaton::kEnded : Automaton::kDead;
  }
  if (text.empty()) return automaton_.after_token(state, token);
  for (const char c : text) {
    state = automaton_.after(state, static_cast<uint8_t>(c));
    if (state == Automaton::kDead) break;
  }
  return state;
}

/// Forgets all states but the last ones of a history, and all masks.
void CompiledStructure::forget(StructureHistory& history) {
  constexpr size_t kKept = 32;
  masks_.clear();
  if (history.epoch != epoch_) {
    automaton_.forget();
    ++epoch_;
    return;
  }
  const std::span<State> states(history.states);
  size_t kept = 0;
  while (kept < std::min(kKept, states.size()) &&
         states[states.size() - kept - 1] != StructureHistory::kForgotten) {
    ++kept;
  }
  std::fill(states.begin(), states.end() - static_cast<std::ptrdiff_t>(kept), StructureHistory::kForgotten);
  automaton_.forget(states.last(kept));
  history.epoch = ++epoch_;
}

/// The state after all of the tokens, with `mutex_` held.
State CompiledStructure::follow(std::span<const int32_t> tokens, std::span<const int32_t> ends,
                                StructureHistory& history) {
  if (automaton_.memory() > kMostStateBytes) forget(history);
  const auto begin = [&] {
    const State start = automaton_.start();
    history.epoch = epoch_;
    history.tokens.clear();
    history.states = {start};
  };
  if (history.epoch != epoch_) begin();
  const auto same = std::mismatch(tokens.begin(), tokens.end(), history.tokens.begin(), history.tokens.end());
  const auto known = static_cast<size_t>(same.first - tokens.begin());
  history.tokens.resize(known);
  history.states.resize(known + 1);
  if (history.states.back() == StructureHistory::kForgotten) begin();
  for (size_t i = history.tokens.size(); i < tokens.size(); ++i) {
    if (automaton_.memory() > kMostStateBytes) forget(history);
    const State next = after(history.states.back(), tokens[i], ends);
    history.tokens.push_back(tokens[i]);
    history.states.push_back(next);
  }
  return history.states.back();
}

const ClassTokens& CompiledStructure::class_tokens(int32_t characters) {
  std::shared_ptr<const ClassTokens>& known = classes_[static_cast<size_t>(characters)];
  if (known == nullptr) {
    known = vocabulary_->class_tokens(automaton_.grammar().loops[static_cast<size_t>(characters)]);
  }
  return *known;
}

std::shared_ptr<const TokenMask> CompiledStructure::make_mask(State state) {
  auto mask = std::make_shared<TokenMask>();
  mask->bits.assign(vocabulary_->words(), 0);
  mask->complete = automaton_.complete(state);
  automaton_.begin_mask();
  const auto after = [this](State from, uint8_t byte) { return automaton_.after_in_mask(from, byte); };
  // What leads through characters of a class alone is known beforehand: most of the vocabulary, within a
  // string of JSON. The few other tokens, and those that leave the class, are tried.
  State rest = Automaton::kDead;
  for (const Automaton::Loop& loop : automaton_.loops(state, rest)) {
    const ClassTokens& tokens = class_tokens(loop.characters);
    const auto longest = static_cast<int64_t>(tokens.within.size()) - 1;
    const int64_t most = loop.most < 0 ? longest : std::min(loop.most, longest);
    merge(tokens.within[static_cast<size_t>(most)], mask->bits);
    tokens.rest.visit(loop.alone, after, mask->bits);
  }
  if (rest != Automaton::kDead) vocabulary_->tokens().visit(rest, after, mask->bits);
  for (const int32_t token : automaton_.tokens(state)) set_bit(mask->bits, token);
  try {
    find_first(state, *mask);
  } catch (const Error&) {
    // The text that follows is too ambiguous further on, where this reply may never get.
  }
  return mask;
}

/// Finds the token that the tokenizer's own way to write the only text that can follow begins with.
void CompiledStructure::find_first(State state, TokenMask& mask) {
  if (mask.complete) return;
  std::string text;
  bool more = false;  // whether several texts can follow behind it
  while (!automaton_.complete(state)) {
    const ByteSet bytes = automaton_.bytes(state);
    const std::vector<int32_t> specials = automaton_.tokens(state);
    if (text.empty() && bytes.none() && !specials.empty() &&
        std::count(specials.begin(), specials.end(), specials.front()) == std::ssize(specials)) {
      mask.first = specials.front();
      mask.only = true;
      return;
    }
    more = bytes.any();
    if (bytes.count() != 1 || !specials.empty() || text.size() >= kLongestForced) break;
    size_t byte = 0;
    while (!bytes.test(byte)) ++byte;
    text += static_cast<char>(byte);
    more = false;
    state = automaton_.after(state, static_cast<uint8_t>(byte));
  }
  if (automaton_.complete(state)) more = automaton_.bytes(state).any();
  const size_t incomplete = incomplete_utf8_suffix(text);
  text.resize(text.size() - incomplete);
  std::vector<int32_t> encoded;
  if (text.empty() || find_invalid_utf8(text) != std::string::npos || !vocabulary_->encode(text, encoded))
    return;
  const int32_t token = encoded.front();
  if (vocabulary_->text(token).empty() || !test_bit(mask.bits, token)) return;
  mask.first = token;
  mask.only = encoded.size() > 1 || (!more && incomplete == 0);
}

/// The mask of a state, with `mutex_` held.
std::shared_ptr<const TokenMask> CompiledStructure::mask_of(State state) {
  const auto found = masks_.find(state);
  if (found != masks_.end()) return found->second;
  std::shared_ptr<const TokenMask> mask = make_mask(state);
  ++computed_masks_;
  if (masks_.size() * (vocabulary_->words() * sizeof(uint64_t) + 128) > kMostMaskBytes) masks_.clear();
  masks_[state] = mask;
  return mask;
}

std::shared_ptr<const TokenMask> CompiledStructure::allowed(std::span<const int32_t> tokens,
                                                            std::span<const int32_t> ends,
                                                            StructureHistory& history) {
  const std::lock_guard lock(mutex_);
  return mask_of(follow(tokens, ends, history));
}

ForcedTokens CompiledStructure::forced(std::span<const int32_t> tokens, std::span<const int32_t> ends,
                                       size_t most, StructureHistory& history) {
  ForcedTokens found;
  const std::lock_guard lock(mutex_);
  State state = follow(tokens, ends, history);
  // A draft is not worth more memory than the structure may remember.
  while (state != Automaton::kDead && found.tokens.size() < most && automaton_.memory() <= kMostStateBytes) {
    const std::shared_ptr<const TokenMask> mask = mask_of(state);
    const bool certain = found.certain == found.tokens.size();
    if (mask->complete) {
      if (ends.empty() ||
          std::any_of(mask->bits.begin(), mask->bits.end(), [](uint64_t word) { return word != 0; }))
        break;
      found.tokens.push_back(ends.front());
      found.certain += certain && ends.size() == 1 ? 1 : 0;
      break;
    }
    const int32_t token = mask->first;
    if (token == TokenMask::kNone) break;
    if (!vocabulary_->text(token).empty() && holds(ends, token)) break;
    found.tokens.push_back(token);
    found.certain += certain && mask->only ? 1 : 0;
    state = after(state, token, ends);
  }
  return found;
}

std::shared_ptr<CompiledStructure> StructureCache::compiled(const Structure& structure) {
  const std::string key = structure_key(*structure.node());
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(known_.begin(), known_.end(), [&](const auto& each) { return each.first == key; });
    if (found != known_.end()) {
      std::rotate(found, found + 1, known_.end());
      return known_.back().second;
    }
  }
  std::shared_ptr<const StructureVocabulary> vocabulary;
  {
    const std::lock_guard lock(vocabulary_mutex_);
    if (vocabulary_ == nullptr) {
      vocabulary_ = std::make_shared<const StructureVocabulary>(tokenizer_, vocabulary_size_);
    }
    vocabulary = vocabulary_;
  }
  auto made = std::make_shared<CompiledStructure>(*structure.node(), std::move(vocabulary));
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostStructures) known_.erase(known_.begin());
  known_.emplace_back(key, made);
  return made;
}

}  // namespace verbatim
