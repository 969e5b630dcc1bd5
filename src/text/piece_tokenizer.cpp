#include "text/piece_tokenizer.h"

#include "base/error.h"
#include "verbatim/text.h"

namespace verbatim {

namespace {

// Positions within a text are kept in 32 bits while pairs are merged.
constexpr size_t kLongestText = size_t{1} << 30;

class PieceTokenizer final : public Tokenizer {
 public:
  PieceTokenizer(std::shared_ptr<const Vocabulary> vocabulary, AddedTokens added,
                 std::unique_ptr<SegmentEncoder> encoder, std::string kind,
                 std::shared_ptr<const PieceDecoder> decoder)
      : vocabulary_(std::move(vocabulary)),
        added_(std::move(added)),
        encoder_(std::move(encoder)),
        kind_(std::move(kind)),
        edges_(decoder != nullptr ? decoder->edges : TextEdges()),
        replacements_(decoder != nullptr ? decoder->replacements : std::vector<TextReplacement>()),
        decoder_(decoder != nullptr && decoder->looks_at_place() ? std::move(decoder) : nullptr) {}

  std::vector<Token> encode(std::string_view text, const EncodeOptions& options) const override {
    require_utf8(text, "the text");
    if (text.size() > kLongestText)
      bad_input("the text has {} bytes; at most {} fit", text.size(), kLongestText);
    std::vector<Token> tokens;
    if (options.add_bos && vocabulary_->add_bos) {
      tokens = vocabulary_->before;
      if (tokens.empty() && vocabulary_->bos) tokens.push_back(*vocabulary_->bos);
    }
    bool first = true;
    for (const TextSegment& segment : added_.split(text, options.parse_special, options.special_within)) {
      if (segment.token >= 0) {
        tokens.push_back(segment.token);
      } else {
        encoder_->encode(segment.text, first, tokens);
      }
      first = false;
    }
    const std::vector<Token>& after = vocabulary_->after;
    if (options.add_end) tokens.insert(tokens.end(), after.begin(), after.end());
    return tokens;
  }

  std::string piece_bytes(Token token, bool first) const override {
    if (!vocabulary_->has(token)) return {};
    const Piece& piece = vocabulary_->pieces[token];
    const std::string& bytes = piece.bytes;
    if (first && decoder_ != nullptr && piece.kind != PieceKind::kControl) {
      return decoder_->decode(piece.text, true, piece.added);
    }
    const bool drop = first && vocabulary_->drop_first_space && !bytes.empty() && bytes[0] == ' ';
    return drop ? bytes.substr(1) : bytes;
  }

  TextEdges edges() const override { return edges_; }
  std::vector<TextReplacement> replacements() const override { return replacements_; }
  int32_t vocab_size() const override { return static_cast<int32_t>(vocabulary_->pieces.size()); }
  std::optional<Token> bos() const override { return vocabulary_->bos; }
  std::optional<Token> eos() const override { return vocabulary_->eos; }
  bool is_control(Token token) const override {
    return vocabulary_->has(token) && vocabulary_->pieces[token].kind == PieceKind::kControl;
  }
  std::optional<Token> find(std::string_view text) const override { return vocabulary_->find(text); }
  std::string_view vocabulary_text(Token token) const override {
    return vocabulary_->has(token) ? std::string_view(vocabulary_->pieces[token].text) : std::string_view();
  }
  std::string kind() const override { return kind_; }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  AddedTokens added_;
  std::unique_ptr<SegmentEncoder> encoder_;
  std::string kind_;
  TextEdges edges_;
  std::vector<TextReplacement> replacements_;
  std::shared_ptr<const PieceDecoder> decoder_;  // nullptr if pieces do not depend on their place
};

}  // namespace

std::shared_ptr<const Tokenizer> make_tokenizer(std::shared_ptr<const Vocabulary> vocabulary,
                                                AddedTokens added, std::unique_ptr<SegmentEncoder> encoder,
                                                std::string kind,
                                                std::shared_ptr<const PieceDecoder> decoder) {
  return std::make_shared<PieceTokenizer>(std::move(vocabulary), std::move(added), std::move(encoder),
                                          std::move(kind), std::move(decoder));
}

}  // namespace verbatim
