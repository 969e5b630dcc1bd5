#include "drafting/draft_vocabulary.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "formats/pack_linear.h"
#include "text/vocabulary.h"

namespace verbatim {

namespace {

/// The role of a token in a reduced vocabulary, by which it is chosen.
enum class Role : uint8_t {
  kPiece,      ///< several characters, or bytes that are no whole one
  kCharacter,  ///< one character
  kLineByte,   ///< a byte token that ends or indents lines
  kRare,       ///< other byte tokens, control tokens, rows that no token has
};

bool is_one_character(const std::string& bytes) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  return !bytes.empty() && !continues(bytes[0]) && std::all_of(bytes.begin() + 1, bytes.end(), continues) &&
         (bytes.size() > 1) == (static_cast<unsigned char>(bytes[0]) >= 0xC0);
}

Role role_of(const Tokenizer& tokenizer, Token token) {
  if (token >= tokenizer.vocab_size() || tokenizer.is_control(token)) return Role::kRare;
  const std::string_view text = tokenizer.vocabulary_text(token);
  if (text.empty()) return Role::kRare;
  if (const auto byte = byte_token_value(text)) {
    return *byte == '\n' || *byte == '\r' || *byte == '\t' ? Role::kLineByte : Role::kRare;
  }
  return is_one_character(tokenizer.piece_bytes(token, false)) ? Role::kCharacter : Role::kPiece;
}

/// Where the alphabet behind the longer pieces begins: the end of the vocabulary that has the most characters
/// more than other pieces, as some tokens may have been added after it. `roles.size()` where there is none.
size_t alphabet_begin(const Tokenizer& tokenizer, const std::vector<Role>& roles) {
  size_t begin = roles.size();
  int64_t excess = 0;
  int64_t most = 0;
  for (size_t token = roles.size(); token-- > 0;) {
    if (roles[token] == Role::kCharacter) ++excess;
    if (roles[token] == Role::kPiece) --excess;
    if (excess > most) {
      most = excess;
      begin = token;
    }
  }
  // Byte-level vocabularies begin with all bytes. Characters at their end are rare ones, made of several.
  for (size_t token = begin; token < roles.size(); ++token) {
    if (roles[token] == Role::kCharacter &&
        tokenizer.piece_bytes(static_cast<Token>(token), false).size() == 1) {
      return begin;
    }
  }
  return roles.size();
}

}  // namespace

std::vector<int32_t> draft_vocabulary(const Tokenizer* tokenizer, int32_t tokens, int32_t count) {
  std::vector<int32_t> choice;
  count = std::clamp(count, 0, tokens);
  if (tokenizer == nullptr || count == tokens) {
    choice.resize(static_cast<size_t>(count));
    std::iota(choice.begin(), choice.end(), 0);
    return choice;
  }
  std::vector<Role> roles(static_cast<size_t>(tokens));
  for (int32_t token = 0; token < tokens; ++token) {
    roles[static_cast<size_t>(token)] = role_of(*tokenizer, token);
  }
  const size_t alphabet = alphabet_begin(*tokenizer, roles);
  std::vector<uint8_t> chosen(roles.size());
  int32_t left = count;
  /// Chooses, in order and up to a number, tokens that are wanted and not chosen yet.
  const auto take = [&](size_t first, int32_t most, auto wanted) {
    for (size_t token = first; token < roles.size() && left > 0 && most > 0; ++token) {
      if (chosen[token] != 0 || !wanted(token)) continue;
      chosen[token] = 1;
      --left;
      --most;
    }
  };
  const auto eos = tokenizer->eos();
  take(0, 1, [&](size_t token) { return eos == static_cast<Token>(token); });
  take(0, count, [&](size_t token) { return roles[token] == Role::kLineByte; });
  take(alphabet, count / 4, [&](size_t token) { return roles[token] == Role::kCharacter; });
  take(0, count, [&](size_t token) { return roles[token] != Role::kRare; });
  take(0, count, [](size_t) { return true; });
  for (size_t token = 0; token < chosen.size(); ++token) {
    if (chosen[token] != 0) choice.push_back(static_cast<int32_t>(token));
  }
  return choice;
}

LinearWeight draft_head(const LinearWeight& head, Reading reading, std::span<const int32_t> tokens,
                        ThreadTeam& team) {
  const PackedMatrix& store = head.store(reading);
  const Reading exact = readings(store.format).front();
  const auto rows = [&](int64_t column, std::span<float> row) {
    std::vector<float> padded(static_cast<size_t>(store.k));
    operations(store.format).unpack_column(store, exact, tokens[static_cast<size_t>(column)], padded);
    std::copy_n(padded.begin(), row.size(), row.begin());
  };
  LinearWeight draft = pack_linear(std::ssize(tokens), head.k, rows,
                                   {.formats = {store.format}, .element = store.element}, team)
                           .weight;
  draft.wide_inputs = head.wide_inputs;
  return draft;
}

}  // namespace verbatim
