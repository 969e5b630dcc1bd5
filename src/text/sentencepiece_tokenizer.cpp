#include "text/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include "base/error.h"
#include "base/printable.h"
#include "text/piece_tokenizer.h"
#include "text/sentencepiece_model.h"

// The library has this function but none of its public headers declares it.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace verbatim {

namespace {

using Type = SentencePieceModel::Type;
using Processor = sentencepiece::SentencePieceProcessor;

constexpr int kLogNothing = 4;  // above the library's FATAL

std::unique_ptr<Processor> make_processor(std::string_view bytes, const std::string& where) {
  sentencepiece::logging::SetMinLogLevel(kLogNothing);
  auto processor = std::make_unique<Processor>();
  std::string problem;
  try {
    const auto status = processor->LoadFromSerializedProto(bytes);
    if (!status.ok()) problem = status.ToString();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (!problem.empty()) bad_input("{}: not a usable SentencePiece model: {}", where, printable(problem));
  return processor;
}

class SentencePieceEncoder final : public SegmentEncoder {
 public:
  // `continued` encodes the segments that do not begin the text; nullptr if the same processor does.
  SentencePieceEncoder(std::unique_ptr<Processor> processor, std::unique_ptr<Processor> continued)
      : processor_(std::move(processor)), continued_(std::move(continued)) {}

  void encode(std::string_view segment, bool first, std::vector<Token>& tokens) const override {
    const Processor& processor = first || continued_ == nullptr ? *processor_ : *continued_;
    std::vector<int> ids;
    const auto status = processor.Encode(segment, &ids);
    if (!status.ok()) bad_input("the text cannot be encoded: {}", printable(status.ToString()));
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }

 private:
  std::unique_ptr<Processor> processor_;
  std::unique_ptr<Processor> continued_;
};

std::string bytes_of(const SentencePieceModel::Entry& entry, bool escape_spaces) {
  if (entry.type == Type::kControl || entry.type == Type::kUnknown) return {};
  if (entry.type == Type::kByte) {
    const auto byte = byte_token_value(entry.text);
    return byte ? std::string(1, static_cast<char>(*byte)) : std::string();
  }
  return escape_spaces ? replace_all(entry.text, kSpaceMark, " ") : entry.text;
}

PieceKind kind_of(Type type) {
  if (type == Type::kControl || type == Type::kUnknown) return PieceKind::kControl;
  return type == Type::kByte ? PieceKind::kByte : PieceKind::kNormal;
}

std::optional<Token> control_token(const Vocabulary& vocabulary, int32_t id) {
  if (!vocabulary.has(id) || vocabulary.pieces[id].kind != PieceKind::kControl) return std::nullopt;
  return id;
}

Vocabulary make_vocabulary(const SentencePieceModel& model, const std::string& where, AddedTokens& added) {
  Vocabulary vocabulary;
  for (size_t i = 0; i < model.entries.size(); ++i) {
    const SentencePieceModel::Entry& entry = model.entries[i];
    const auto id = static_cast<Token>(i);
    vocabulary.set(id, entry.text, kind_of(entry.type), bytes_of(entry, model.escape_spaces));
    if (kind_of(entry.type) != PieceKind::kControl) continue;
    AddedToken token;
    token.content = entry.text;
    token.id = id;
    token.special = true;
    added.add(std::move(token), where);
  }
  vocabulary.unknown = control_token(vocabulary, model.unknown);
  vocabulary.bos = control_token(vocabulary, model.bos);
  vocabulary.eos = control_token(vocabulary, model.eos);
  vocabulary.add_bos = true;
  vocabulary.drop_first_space = model.add_dummy_prefix;
  return vocabulary;
}

}  // namespace

std::shared_ptr<const Tokenizer> parse_sentencepiece(std::string_view bytes, const std::string& where,
                                                     const TokenizerConfig& config) {
  const SentencePieceModel model = parse_sentencepiece_model(bytes, where);
  auto processor = make_processor(bytes, where);
  std::unique_ptr<Processor> continued;
  if (model.add_dummy_prefix && !config.legacy.value_or(true)) {
    continued = make_processor(without_dummy_prefix(bytes), where);
  }
  AddedTokens added;
  Vocabulary vocabulary = make_vocabulary(model, where, added);
  apply_tokenizer_config(config, where, vocabulary, added);
  return make_tokenizer(std::make_shared<const Vocabulary>(std::move(vocabulary)), std::move(added),
                        std::make_unique<SentencePieceEncoder>(std::move(processor), std::move(continued)),
                        "sentencepiece");
}

std::shared_ptr<const Tokenizer> load_sentencepiece(const TokenizerFiles& files) {
  return parse_sentencepiece(files.at(files.vocabulary), files.where(files.vocabulary),
                             tokenizer_config_of(files));
}

}  // namespace verbatim
