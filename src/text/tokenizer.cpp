#include "text/tokenizer.h"

#include <span>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/gguf.h"
#include "text/gguf_tokenizer.h"
#include "text/sentencepiece_tokenizer.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_json.h"
#include "text/vocabulary.h"

namespace verbatim {

std::string Tokenizer::decode(const std::vector<Token>& tokens) const {
  std::string text;
  bool first = true;
  for (const Token token : tokens) {
    if (is_control(token)) continue;
    text += piece_bytes(token, first);
    first = false;
  }
  return without_edges(with_replacements(std::move(text), replacements()), edges());
}

std::string with_replacements(std::string text, const std::vector<TextReplacement>& replacements) {
  for (const TextReplacement& each : replacements) text = replace_all(text, each.from, each.to);
  return text;
}

std::string without_edges(std::string text, const TextEdges& edges) {
  if (edges.content.empty()) return text;
  size_t begin = 0;
  for (size_t i = 0; i < edges.start && text.compare(begin, edges.content.size(), edges.content) == 0; ++i) {
    begin += edges.content.size();
  }
  text.erase(0, begin);
  for (size_t i = 0; i < edges.stop && text.ends_with(edges.content); ++i) {
    text.resize(text.size() - edges.content.size());
  }
  return text;
}

namespace {

std::shared_ptr<const Tokenizer> load_gguf_vocabulary(const TokenizerSource& source) {
  if (source.embedded.empty()) return make_gguf_tokenizer(open_gguf(source.path), source.path.string());
  const TokenizerFiles files = read_tokenizer_files(source);
  const std::string where = files.where(files.vocabulary);
  return make_gguf_tokenizer(parse_gguf(std::as_bytes(std::span(files.at(files.vocabulary))), where), where);
}

}  // namespace

std::shared_ptr<const Tokenizer> load_tokenizer(const TokenizerSource& source) {
  switch (source.kind) {
    case TokenizerSource::Kind::kSentencePieceModel:
      return load_sentencepiece(read_tokenizer_files(source));
    case TokenizerSource::Kind::kTokenizerJson:
      return load_tokenizer_json(read_tokenizer_files(source));
    case TokenizerSource::Kind::kGguf:
      return load_gguf_vocabulary(source);
    case TokenizerSource::Kind::kNone:
      break;
  }
  bad_input("the model has no vocabulary: put its tokenizer.model or tokenizer.json into its folder");
}

}  // namespace verbatim
