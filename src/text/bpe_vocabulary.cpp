#include "text/bpe_vocabulary.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "text/piece_trie.h"

namespace verbatim {

namespace {

// Tokens by falling score; equal scores share a rank.
std::vector<int32_t> rank_by_score(const std::vector<float>& scores) {
  std::vector<int32_t> order(scores.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
  std::vector<int32_t> ranks(scores.size());
  int32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && scores[order[i]] != scores[order[i - 1]]) ++rank;
    ranks[order[i]] = rank;
  }
  return ranks;
}

}  // namespace

void add_merge(std::string_view left, std::string_view right, int32_t rank, const std::string& where,
               const Vocabulary& vocabulary, MergeTable& merges, std::string_view inner_prefix) {
  if (!right.starts_with(inner_prefix)) {
    bad_input(
        "{}: the second text of merge {} ('{}') does not begin with '{}', which marks texts within words",
        where, rank, printable(right), printable(inner_prefix));
  }
  const auto left_id = vocabulary.find(left);
  const auto right_id = vocabulary.find(right);
  const auto merged = vocabulary.find(std::string(left).append(right.substr(inner_prefix.size())));
  if (!left_id || !right_id || !merged) {
    bad_input("{}: merge {} ('{}' and '{}') names a text that is not in the vocabulary", where, rank,
              printable(left), printable(right));
  }
  merges.add(*left_id, *right_id, {rank, *merged});
}

void add_merge(std::string_view pair, int32_t rank, const std::string& where, const Vocabulary& vocabulary,
               MergeTable& merges, std::string_view inner_prefix) {
  const size_t space = pair.find(' ');
  if (space == std::string_view::npos)
    bad_input("{}: merge {} has no space between its two texts", where, rank);
  add_merge(pair.substr(0, space), pair.substr(space + 1), rank, where, vocabulary, merges, inner_prefix);
}

MergeTable merges_from_scores(const Vocabulary& vocabulary, const std::vector<float>& scores,
                              const std::string& where) {
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) bad_input("{}: the score of token {} is not a number", where, i);
  }
  const std::vector<int32_t> ranks = rank_by_score(scores);
  const auto normal = [&](std::string_view text) -> std::optional<Token> {
    const auto id = vocabulary.find(text);
    return id && vocabulary.pieces[*id].kind == PieceKind::kNormal ? id : std::nullopt;
  };
  MergeTable merges;
  merges.reserve(vocabulary.pieces.size() * 2);
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const Piece& piece = vocabulary.pieces[id];
    if (piece.kind != PieceKind::kNormal) continue;
    if (piece.text.size() > kLongestPiece) {
      bad_input("{}: token {} has {} bytes; the limit is {}", where, id, piece.text.size(), kLongestPiece);
    }
    const std::string_view text = piece.text;
    for (size_t cut = text.empty() ? 0 : utf8_length(text[0]); cut < text.size();
         cut += utf8_length(text[cut])) {
      const auto left = normal(text.substr(0, cut));
      const auto right = left ? normal(text.substr(cut)) : std::nullopt;
      if (left && right) merges.add(*left, *right, {ranks[id], static_cast<Token>(id)});
    }
  }
  return merges;
}

}  // namespace verbatim
