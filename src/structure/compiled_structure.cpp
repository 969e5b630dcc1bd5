#include "structure/compiled_structure.h"

#include <algorithm>

#include "base/utf8.h"

namespace verbatim {

namespace {

using State = Automaton::State;

/// What a structure remembers at most, in bytes, of states and of masks.
constexpr size_t kMostStateBytes = size_t{48} << 20;
constexpr size_t kMostMaskBytes = size_t{32} << 20;
/// The structures that are remembered for a model.
constexpr size_t kMostStructures = 16;

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

/// The state after all of the tokens, with `mutex_` held.
State CompiledStructure::follow(std::span<const int32_t> tokens, std::span<const int32_t> ends,
                                StructureHistory& history) {
  if (automaton_.memory() > kMostStateBytes) {
    automaton_.forget();
    masks_.clear();
    ++epoch_;
  }
  if (history.epoch != epoch_) {
    history.epoch = epoch_;
    history.tokens.clear();
    history.states = {automaton_.start()};
  }
  const auto same = std::mismatch(tokens.begin(), tokens.end(), history.tokens.begin(), history.tokens.end());
  const auto known = static_cast<size_t>(same.first - tokens.begin());
  history.tokens.resize(known);
  history.states.resize(known + 1);
  for (size_t i = known; i < tokens.size(); ++i) {
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
  const auto after = [this](State from, uint8_t byte) { return automaton_.after(from, byte); };
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
  return mask;
}

std::shared_ptr<const TokenMask> CompiledStructure::allowed(std::span<const int32_t> tokens,
                                                            std::span<const int32_t> ends,
                                                            StructureHistory& history) {
  const std::lock_guard lock(mutex_);
  const State state = follow(tokens, ends, history);
  const auto found = masks_.find(state);
  if (found != masks_.end()) return found->second;
  std::shared_ptr<const TokenMask> mask = make_mask(state);
  ++computed_masks_;
  if (masks_.size() * (vocabulary_->words() * sizeof(uint64_t) + 128) > kMostMaskBytes) masks_.clear();
  masks_[state] = mask;
  return mask;
}

std::vector<int32_t> CompiledStructure::forced(std::span<const int32_t> tokens, std::span<const int32_t> ends,
                                               size_t most, StructureHistory& history) {
  constexpr size_t kLongestText = 1024;
  std::vector<int32_t> found;
  const std::lock_guard lock(mutex_);
  State state = follow(tokens, ends, history);
  std::string text;
  const auto add_text = [&] {
    const size_t incomplete = incomplete_utf8_suffix(text);
    text.resize(text.size() - incomplete);
    std::vector<int32_t> encoded;
    const bool exact = find_invalid_utf8(text) == std::string::npos && vocabulary_->encode(text, encoded);
    if (exact) found.insert(found.end(), encoded.begin(), encoded.end());
    text.clear();
    return exact && incomplete == 0;
  };
  while (state != Automaton::kDead && found.size() < most && text.size() < kLongestText) {
    const ByteSet bytes = automaton_.bytes(state);
    const std::vector<int32_t> specials = automaton_.tokens(state);
    if (automaton_.complete(state)) {
      if (bytes.none() && specials.empty() && !ends.empty() && add_text()) found.push_back(ends.front());
      break;
    }
    if (bytes.count() == 1 && specials.empty()) {
      size_t byte = 0;
      while (!bytes.test(byte)) ++byte;
      text += static_cast<char>(byte);
      state = automaton_.after(state, static_cast<uint8_t>(byte));
    } else if (bytes.none() &&
               std::count(specials.begin(), specials.end(), specials.front()) == std::ssize(specials)) {
      if (!add_text()) break;
      found.push_back(specials.front());
      state = automaton_.after_token(state, specials.front());
    } else {
      break;
    }
  }
  if (!text.empty()) add_text();
  if (found.size() > most) found.resize(most);
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
