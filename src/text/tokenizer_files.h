#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// The files that a vocabulary is loaded from, whole: those of a folder, or those inside a packed file.
struct TokenizerFiles {
  std::filesystem::path place;                  ///< the folder or the packed file
  std::string vocabulary;                       ///< the name of the one that holds it
  std::map<std::string, std::string> contents;  ///< by name; of a GGUF file the metadata, as a GGUF file

  /// nullptr when absent.
  const std::string* find(const std::string& name) const;
  /// Throws Error(kBadInput) when absent.
  const std::string& at(const std::string& name) const;
  /// Names the file in errors.
  std::string where(const std::string& name) const { return (place / name).string(); }
};

/// Reads all that load_tokenizer() wants of a source, settings beside the vocabulary included, where there
/// are any. What they hold as TokenizerSource::embedded loads as the source itself does. Throws
/// Error(kBadInput) when a file cannot be read; not for Kind::kNone.
TokenizerFiles read_tokenizer_files(const TokenizerSource& source);

}  // namespace verbatim
