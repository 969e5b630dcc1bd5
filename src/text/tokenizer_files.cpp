#include "text/tokenizer_files.h"

#include "base/error.h"
#include "base/input_file.h"
#include "checkpoint/gguf.h"

namespace verbatim {

namespace fs = std::filesystem;

namespace {

/// Far above any vocabulary, and little enough to be read whole.
constexpr size_t kLongestFile = size_t{1} << 28;

constexpr const char* kGgufVocabulary = "vocabulary.gguf";

std::string read_all(const fs::path& path) {
  std::string contents = read_input(path, kLongestFile);
  if (contents.empty()) bad_input("{} is empty", path.string());
  return contents;
}

TokenizerFiles embedded_files(const TokenizerSource& source) {
  TokenizerFiles files{.place = source.path, .vocabulary = "", .contents = {}};
  for (const auto& [name, contents] : source.embedded) files.contents.emplace(name, contents);
  switch (source.kind) {
    case TokenizerSource::Kind::kSentencePieceModel:
      files.vocabulary = "tokenizer.model";
      break;
    case TokenizerSource::Kind::kTokenizerJson:
      files.vocabulary = files.find("tokenizer.json") != nullptr ? "tokenizer.json" : "vocab.json";
      break;
    case TokenizerSource::Kind::kGguf:
      files.vocabulary = kGgufVocabulary;
      break;
    case TokenizerSource::Kind::kNone:
      break;
  }
  return files;
}

}  // namespace

const std::string* TokenizerFiles::find(const std::string& name) const {
  const auto found = contents.find(name);
  return found == contents.end() ? nullptr : &found->second;
}

const std::string& TokenizerFiles::at(const std::string& name) const {
  const std::string* const found = find(name);
  if (found == nullptr) bad_input("{} has no {}; its vocabulary is incomplete", place.string(), name);
  return *found;
}

TokenizerFiles read_tokenizer_files(const TokenizerSource& source) {
  if (!source.embedded.empty()) return embedded_files(source);
  if (source.kind == TokenizerSource::Kind::kGguf) {
    return {.place = source.path,
            .vocabulary = kGgufVocabulary,
            .contents = {{kGgufVocabulary, gguf_without_tensors(open_gguf(source.path))}}};
  }
  const fs::path folder = source.path.parent_path();
  TokenizerFiles files{.place = folder, .vocabulary = source.path.filename().string(), .contents = {}};
  files.contents[files.vocabulary] = read_all(source.path);
  if (files.vocabulary == "vocab.json") files.contents["merges.txt"] = read_all(folder / "merges.txt");
  for (const char* name :
       {"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "chat_template.json"}) {
    std::error_code unreadable;
    if (fs::exists(folder / name, unreadable)) files.contents[name] = read_all(folder / name);
  }
  return files;
}

}  // namespace verbatim
