#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/character_map.h"
#include "text/pattern.h"

namespace verbatim {

/// One step of normalization, which changes a text before it is encoded.
struct NormalizerStep {
  enum class Kind {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kReplace,          ///< every match of `pattern` becomes `content`
    kPrepend,          ///< `content` goes before a text that is not empty
    kStripLeft,        ///< white space at the start is removed
    kStripRight,       ///< white space at the end is removed
    kLowercase,        ///< every character by itself
    kDropMarks,        ///< all combining marks are removed
    kDropAccents,      ///< combining marks that take no space of their own are removed
    kClean,            ///< control characters are removed, white space becomes spaces (BERT)
    kSpaceIdeographs,  ///< Chinese characters get a space on either side (BERT)
    kNmt,              ///< SentencePiece's rules for control characters and spaces
    kByteLevel,        ///< every byte becomes the character by which GPT-2 writes it
    kMapCharacters,    ///< SentencePiece's `map` applies
  };
  Kind kind = Kind::kNfc;
  Pattern pattern;
  std::string content;
  std::shared_ptr<const CharacterMap> map;
};

using Normalizer = std::vector<NormalizerStep>;

/// Applies all steps to `text` (valid UTF-8). Throws Error(kBadInput) if they make it absurdly long.
std::string normalize(const Normalizer& normalizer, std::string_view text);

}  // namespace verbatim
