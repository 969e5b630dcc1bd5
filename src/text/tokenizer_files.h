#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// The contents of the files that a vocabulary is loaded from: files of a folder, or inside a packed file.
struct TokenizerFiles {
  std::filesystem::path place;                  ///< the folder or the packed file
  std::string vocabulary;                       ///< the name of the file that holds the vocabulary
  std::map<std::string, std::string> contents;  ///< by name; a GGUF file is there without its tensors

  /// The contents of a file; nullptr if it is absent.
  const std::string* find(const std::string& name) const;
  /// The contents of a file. Throws Error(kBadInput) if it is absent.
  const std::string& at(const std::string& name) const;
  /// The name of a file for errors.
  std::string where(const std::string& name) const { return (place / name).string(); }
};

/// Reads all files that load_tokenizer() needs of a source, those with settings and with a chat template
/// included. Given as
/// TokenizerSource::embedded, the contents load as the source itself does. Throws Error(kBadInput) if a file
/// cannot be read. Must not be called for Kind::kNone.
TokenizerFiles read_tokenizer_files(const TokenizerSource& source);

}  // namespace verbatim
