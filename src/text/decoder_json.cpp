#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "text/step_json.h"
#include "text/tokenizer_json_steps.h"

namespace verbatim {

namespace {

using DecoderKind = DecoderStep::Kind;

constexpr std::string_view kReplacementCharacter = "\uFFFD";

/// A decoder while its steps are read: steps apply to tokens one by one until one joins them.
struct DecoderReader {
  PieceDecoder decoder;
  bool joined = false;    ///< what follows applies to the whole text
  bool finished = false;  ///< nothing may follow that changes a text
};

DecoderStep& add_decoder(DecoderKind kind, DecoderReader& reader) {
  reader.decoder.steps.emplace_back();
  reader.decoder.steps.back().kind = kind;
  return reader.decoder.steps.back();
}

void refuse_joined(const std::string& type, const DecoderReader& reader) {
  if (!reader.joined && !reader.finished) return;
  bad_input("{}: the decoder '{}' after one that joins tokens is not supported", reader.decoder.where,
            printable(type));
}

/// Whether the bytes of a character may come from several tokens.
bool may_cut_characters(const DecoderReader& reader) {
  return std::ranges::any_of(reader.decoder.steps, [](const DecoderStep& step) {
    return step.kind == DecoderKind::kByteFallback || step.kind == DecoderKind::kByteLevel;
  });
}

bool is_character(const Pattern& pattern) {
  return !pattern.regex && utf8_length(pattern.literal[0]) == pattern.literal.size();
}

void add_replace_decoder(const Json& json, DecoderReader& reader) {
  Pattern pattern = parse_pattern(json, reader.decoder.where);
  // In a joined text a match could lie across tokens, unless it is one character. What is written for bytes
  // that form no character is not in the text here.
  if (reader.finished || !is_character(pattern) || pattern.literal == kReplacementCharacter) {
    refuse_joined("Replace", reader);
  }
  DecoderStep& step = add_decoder(DecoderKind::kReplace, reader);
  step.joined = reader.joined;
  step.pattern = std::move(pattern);
  step.content = require_string(json, "content", reader.decoder.where);
}

/// Lists the replacements in the joined text, which find the characters that several tokens spell together.
/// Those within a token have been replaced by then, and replacing twice must do nothing.
void add_replacements(DecoderReader& reader) {
  PieceDecoder& decoder = reader.decoder;
  for (const DecoderStep& step : decoder.steps) {
    if (!step.joined || step.kind != DecoderKind::kReplace) continue;
    decoder.replacements.push_back({.from = step.pattern.literal, .to = step.content});
  }
  const auto has_one_byte = [](const TextReplacement& each) { return each.from.size() == 1; };
  if (!may_cut_characters(reader) || std::ranges::all_of(decoder.replacements, has_one_byte)) {
    return decoder.replacements.clear();
  }
  for (const TextReplacement& made : decoder.replacements) {
    // Bytes beside a character that is taken out may form another one.
    if (made.to.empty() && decoder.replacements.size() > 1) refuse_joined("Replace", reader);
    for (const TextReplacement& sought : decoder.replacements) {
      if (made.to.find(sought.from) != std::string::npos) refuse_joined("Replace", reader);
    }
  }
}

void add_strip_decoder(const Json& json, DecoderReader& reader) {
  const std::string& where = reader.decoder.where;
  if (reader.finished) refuse_joined("Strip", reader);
  const TextEdges edges{.content = character_field(json, "content", {}, where),
                        .start = count_field(json, "start", where),
                        .stop = count_field(json, "stop", where)};
  if (!reader.joined) {
    DecoderStep& step = add_decoder(DecoderKind::kStrip, reader);
    step.content = edges.content;
    step.start = edges.start;
    step.stop = edges.stop;
    return;
  }
  reader.finished = true;
  reader.decoder.edges = edges;
}

/// Leaves out the space that begins a text with the first token, where no other token could begin the text.
void drop_first_space(PieceDecoder& decoder) {
  const TextEdges& edges = decoder.edges;
  if (edges.content != " " || edges.start != 1 || edges.stop != 0) return;
  const auto keeps_tokens = [](const DecoderStep& step) {
    return step.kind == DecoderKind::kByteFallback || step.kind == DecoderKind::kByteLevel ||
           (step.kind == DecoderKind::kReplace && !step.content.empty());
  };
  if (!decoder.replacements.empty() || !std::ranges::all_of(decoder.steps, keeps_tokens)) return;
  decoder.edges = {};
  decoder.drop_first_space = true;
}

void add_mark(const Json& json, DecoderReader& reader) {
  refuse_joined("Metaspace", reader);
  const std::string& where = reader.decoder.where;
  DecoderStep& step = add_decoder(DecoderKind::kMark, reader);
  step.content = character_field(json, "replacement", std::string(kSpaceMark), where);
  step.at_start = prepend_scheme(json, where) != "never";
}

void add_word_piece(const Json& json, DecoderReader& reader) {
  refuse_joined("WordPiece", reader);
  const std::string& where = reader.decoder.where;
  add_decoder(DecoderKind::kWordPiece, reader).content = string_field(json, "prefix", where).value_or("##");
  if (bool_field(json, "cleanup", where).value_or(true)) add_decoder(DecoderKind::kCleanUp, reader);
}

void add_word_end(const Json& json, DecoderReader& reader) {
  refuse_joined("BPEDecoder", reader);
  const std::string& where = reader.decoder.where;
  DecoderStep& step = add_decoder(DecoderKind::kWordEnd, reader);
  step.content = string_field(json, "suffix", where).value_or("</w>");
  if (step.content.empty()) bad_input("{}: the 'suffix' of 'BPEDecoder' is empty", where);
  reader.decoder.edges = {.content = " ", .start = 0, .stop = 1};
  reader.finished = true;
}

void add_decoder_step(const Json& json, DecoderReader& reader) {
  const std::string type = require_string(json, "type", reader.decoder.where);
  if (type == "ByteLevel") {
    // The tokens are joined by 'Fuse' as they are by 'ByteLevel' itself.
    if (reader.finished || may_cut_characters(reader)) refuse_joined(type, reader);
    add_decoder(DecoderKind::kByteLevel, reader).joined = reader.joined;
    reader.joined = true;
  } else if (type == "ByteFallback") {
    refuse_joined(type, reader);
    add_decoder(DecoderKind::kByteFallback, reader);
  } else if (type == "Replace") {
    add_replace_decoder(json, reader);
  } else if (type == "Metaspace") {
    add_mark(json, reader);
  } else if (type == "Strip") {
    add_strip_decoder(json, reader);
  } else if (type == "WordPiece") {
    add_word_piece(json, reader);
  } else if (type == "BPEDecoder") {
    add_word_end(json, reader);
  } else if (type == "Fuse") {
    reader.joined = true;
  } else {
    refuse_step("decoder", type,
                "Sequence, ByteLevel, ByteFallback, Replace, Metaspace, Strip, WordPiece, BPEDecoder, Fuse",
                reader.decoder.where);
  }
}

}  // namespace

PieceDecoder parse_decoder(const Json& tokenizer, const std::string& where) {
  DecoderReader reader;
  reader.decoder.where = where;
  for (const Json* step : steps_of(tokenizer, "decoder", "decoders", where)) add_decoder_step(*step, reader);
  add_replacements(reader);
  drop_first_space(reader.decoder);
  // Without any decoder, tokens are words.
  if (find_field(tokenizer, "decoder") == nullptr) add_decoder(DecoderKind::kSpaceBetween, reader);
  return std::move(reader.decoder);
}

}  // namespace verbatim
