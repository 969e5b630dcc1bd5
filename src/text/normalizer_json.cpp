#include <map>

#include "base/error.h"
#include "text/step_json.h"
#include "text/tokenizer_json_steps.h"

namespace verbatim {

namespace {

using NormalizerKind = NormalizerStep::Kind;

NormalizerStep normalizer_step(NormalizerKind kind) {
  NormalizerStep step;
  step.kind = kind;
  return step;
}

void add_strip_normalizer(const Json& json, const std::string& where, Normalizer& normalizer) {
  if (bool_field(json, "strip_left", where).value_or(true))
    normalizer.push_back(normalizer_step(NormalizerKind::kStripLeft));
  if (bool_field(json, "strip_right", where).value_or(true))
    normalizer.push_back(normalizer_step(NormalizerKind::kStripRight));
}

void add_bert_normalizer(const Json& json, const std::string& where, Normalizer& normalizer) {
  const auto is_set = [&](const char* name) { return bool_field(json, name, where).value_or(true); };
  const bool lowercase = is_set("lowercase");
  if (is_set("clean_text")) normalizer.push_back(normalizer_step(NormalizerKind::kClean));
  if (is_set("handle_chinese_chars")) normalizer.push_back(normalizer_step(NormalizerKind::kSpaceIdeographs));
  if (bool_field(json, "strip_accents", where).value_or(lowercase)) {
    normalizer.push_back(normalizer_step(NormalizerKind::kNfd));
    normalizer.push_back(normalizer_step(NormalizerKind::kDropAccents));
  }
  if (lowercase) normalizer.push_back(normalizer_step(NormalizerKind::kLowercase));
}

NormalizerStep parse_character_map(const Json& json, const std::string& where) {
  auto bytes = base64_bytes(require_string(json, "precompiled_charsmap", where));
  if (!bytes) bad_input("{}: 'precompiled_charsmap' of the normalizer 'Precompiled' is not base64", where);
  NormalizerStep step = normalizer_step(NormalizerKind::kMapCharacters);
  step.map = std::make_shared<const CharacterMap>(std::move(*bytes), where);
  return step;
}

void add_normalizer_step(const Json& json, const std::string& where, Normalizer& normalizer) {
  static const std::map<std::string, NormalizerKind> plain = {{"NFC", NormalizerKind::kNfc},
                                                              {"NFD", NormalizerKind::kNfd},
                                                              {"NFKC", NormalizerKind::kNfkc},
                                                              {"NFKD", NormalizerKind::kNfkd},
                                                              {"Lowercase", NormalizerKind::kLowercase},
                                                              {"StripAccents", NormalizerKind::kDropMarks},
                                                              {"Nmt", NormalizerKind::kNmt},
                                                              {"ByteLevel", NormalizerKind::kByteLevel}};
  const std::string type = require_string(json, "type", where);
  if (const auto kind = plain.find(type); kind != plain.end()) {
    normalizer.push_back(normalizer_step(kind->second));
  } else if (type == "Replace") {
    NormalizerStep step = normalizer_step(NormalizerKind::kReplace);
    step.pattern = parse_pattern(json, where);
    step.content = require_string(json, "content", where);
    normalizer.push_back(std::move(step));
  } else if (type == "Prepend") {
    NormalizerStep step = normalizer_step(NormalizerKind::kPrepend);
    step.content = require_string(json, "prepend", where);
    normalizer.push_back(std::move(step));
  } else if (type == "Strip") {
    add_strip_normalizer(json, where, normalizer);
  } else if (type == "BertNormalizer") {
    add_bert_normalizer(json, where, normalizer);
  } else if (type == "Precompiled") {
    normalizer.push_back(parse_character_map(json, where));
  } else {
    refuse_step(
        "normalizer", type,
        "Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, BertNormalizer, Precompiled, "
        "Replace, Prepend, Nmt, ByteLevel",
        where);
  }
}

}  // namespace

Normalizer parse_normalizer(const Json& tokenizer, const std::string& where) {
  return parse_steps(tokenizer, "normalizer", "normalizers", where, add_normalizer_step);
}

}  // namespace verbatim
