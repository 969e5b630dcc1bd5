#pragma once

#include <memory>

#include "text/bpe_merge.h"
#include "text/piece_tokenizer.h"
#include "text/text_steps.h"

namespace verbatim {

/// Byte-pair encoding, in both of its dialects: over bytes (GPT-2) and over characters (SentencePiece).
struct BpeModel {
  std::shared_ptr<const Vocabulary> vocabulary;
  TextSteps steps;
  MergeTable merges;
  std::string inner_prefix;    ///< begins every token within a word but the first, before merging
  std::string end_suffix;      ///< ends the last token of a word
  bool byte_level = false;     ///< words are sequences of bytes, each written as GPT-2's character for it
  bool byte_fallback = false;  ///< a character without a token is written as byte tokens
  bool fuse_unknown = false;   ///< neighbouring characters without any token give one unknown token
  bool ignore_merges = false;  ///< a word that is a token as a whole is not built by merges
};

/// Makes the encoder of a byte-pair vocabulary.
std::unique_ptr<SegmentEncoder> make_bpe_encoder(BpeModel model);

}  // namespace verbatim
