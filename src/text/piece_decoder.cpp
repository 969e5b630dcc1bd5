#include "text/piece_decoder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "text/byte_level.h"

namespace verbatim {

namespace {

bool has_step(const std::vector<DecoderStep>& steps, DecoderStep::Kind kind) {
  return std::any_of(steps.begin(), steps.end(), [&](const DecoderStep& step) { return step.kind == kind; });
}

std::string replaced(const DecoderStep& step, std::string_view piece, size_t limit,
                     const std::string& where) {
  std::string text;
  size_t begin = 0;
  for (const TextRange& range : step.pattern.find_all(piece)) {
    text += piece.substr(begin, range.begin - begin);
    text += step.content;
    begin = range.end;
    if (text.size() > limit)
      bad_input("{}: the decoder makes the token '{}' absurdly long", where, printable(piece));
  }
  return text.append(piece.substr(begin));
}

std::string stripped(const DecoderStep& step, const std::string& piece) {
  return without_edges(piece, {.content = step.content, .start = step.start, .stop = step.stop});
}

std::string cleaned_up(std::string text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kReplacements = {
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" do not", " don't"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  for (const auto& [from, to] : kReplacements) text = replace_all(text, from, to);
  return text;
}

// The space behind a word is left out at the end of a text, by the edges of the decoder. Any other space
// there, or an end of a word within a token, would be taken for it.
std::string with_word_end(std::string_view end, const std::string& piece, const std::string& where) {
  const size_t at = piece.find(end);
  if (at == std::string::npos && !piece.ends_with(' ')) return piece;
  if (at == std::string::npos || at + end.size() != piece.size()) {
    bad_input(
        "{}: the decoder 'BPEDecoder' is not supported with the token '{}', which has a space or '{}' in "
        "an unusual place",
        where, printable(piece), printable(end));
  }
  return piece.substr(0, at) + " ";
}

}  // namespace

std::string PieceDecoder::decode(std::string_view piece, bool first, bool added) const {
  const size_t limit = 64 * piece.size() + 256;
  std::string text(piece);
  for (const DecoderStep& step : steps) {
    switch (step.kind) {
      case DecoderStep::Kind::kByteLevel:
        if (auto bytes = added ? std::nullopt : byte_level_bytes(text)) text = std::move(*bytes);
        break;
      case DecoderStep::Kind::kByteFallback:
        if (const auto byte = byte_token_value(text)) {
          text.assign(1, static_cast<char>(*byte));
          // A part of a character is no text that another step could apply to.
          if (*byte >= 0x80) return text;
        }
        break;
      case DecoderStep::Kind::kReplace:
        text = replaced(step, text, limit, where);
        break;
      case DecoderStep::Kind::kMark:
        text = replace_all(text, step.content, first && step.at_start ? "" : " ");
        break;
      case DecoderStep::Kind::kStrip:
        text = stripped(step, text);
        break;
      case DecoderStep::Kind::kWordPiece:
        if (first) break;
        if (text.starts_with(step.content)) {
          text.erase(0, step.content.size());
        } else {
          text.insert(0, " ");
        }
        break;
      case DecoderStep::Kind::kCleanUp:
        text = cleaned_up(std::move(text));
        break;
      case DecoderStep::Kind::kWordEnd:
        text = with_word_end(step.content, text, where);
        break;
      case DecoderStep::Kind::kSpaceBetween:
        if (!first) text.insert(0, " ");
        break;
    }
    if (text.size() > limit)
      bad_input("{}: the decoder makes the token '{}' absurdly long", where, printable(piece));
  }
  return text;
}

bool PieceDecoder::looks_at_place() const {
  const auto looks = [](const DecoderStep& step) {
    return step.at_start || step.kind == DecoderStep::Kind::kWordPiece ||
           step.kind == DecoderStep::Kind::kSpaceBetween;
  };
  return std::any_of(steps.begin(), steps.end(), looks);
}

void PieceDecoder::require_independent(const Vocabulary& vocabulary) const {
  const auto bytes = std::find_if(steps.begin(), steps.end(), [](const DecoderStep& step) {
    return step.joined && step.kind == DecoderStep::Kind::kByteLevel;
  });
  if (bytes == steps.end()) return;
  PieceDecoder before = *this;
  before.steps.resize(static_cast<size_t>(bytes - steps.begin()));
  for (const Piece& piece : vocabulary.pieces) {
    if (piece.kind == PieceKind::kAbsent || piece.kind == PieceKind::kControl) continue;
    for (const bool first : {false, true}) {
      const std::string text = before.decode(piece.text, first, piece.added);
      const std::optional<std::string> spelled = byte_level_bytes(text);
      // Added tokens do not write bytes as characters, unless those are the same.
      if (spelled && (!piece.added || *spelled == text)) continue;
      bad_input(
          "{}: the decoder 'ByteLevel' after one that joins tokens is not supported with the token '{}', "
          "which does not spell bytes",
          where, printable(piece.text));
    }
  }
}

bool PieceDecoder::has_byte_tokens() const {
  return has_step(steps, DecoderStep::Kind::kByteFallback);
}

}  // namespace verbatim
