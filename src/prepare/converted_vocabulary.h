#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/gguf.h"
#include "checkpoint/gguf_writer.h"
#include "text/tokenizer.h"

namespace verbatim {

/// What a GGUF file cannot say of a vocabulary. Such files leave it out, whoever makes them.
struct VocabularyLoss {
  bool composition = false;   ///< texts are composed (NFC) before they are cut
  bool later_spaces = false;  ///< text after a special token gets no space before it
  std::vector<std::string> warnings() const;
};

/// Adds a vocabulary from a folder to the metadata of a GGUF file, filled up to `rows` tokens. Throws
/// Error(kBadInput) for a vocabulary that GGUF has no like of.
VocabularyLoss add_gguf_vocabulary(const TokenizerSource& source, int32_t rows, GgufMetadata& metadata);

/// The files of a folder that hold the vocabulary of a GGUF file, by name: tokenizer.model or tokenizer.json,
/// and tokenizer_config.json.
std::map<std::string, std::string> folder_vocabulary(const GgufFile& gguf, const std::string& where);

/// The text of a token that only fills a GGUF file's list of tokens up to the rows of the model.
std::string filling_text(int64_t token);

/// Checks that a converted vocabulary has the tokens of the original, and cuts some texts of all kinds into
/// the same ones, except where `loss` says otherwise. Throws Error(kBadInput), naming `where` and what
/// differs.
void require_same_tokens(const Tokenizer& original, const Tokenizer& converted, const VocabularyLoss& loss,
                         const std::string& where);

}  // namespace verbatim
