#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "structure/automaton.h"
#include "structure/node.h"
#include "text/tokenizer.h"

namespace verbatim::test {

/// Says of texts whether they are among those of a structure, without any vocabulary: special tokens are
/// text.
class Reader {
 public:
  explicit Reader(const Structure& structure)
      : automaton_(std::make_shared<const Grammar>(
            make_grammar(*structure.node(), [](std::string_view) { return std::nullopt; }))) {}

  /// The state after a text.
  Automaton::State after(std::string_view text) {
    Automaton::State state = automaton_.start();
    for (const char c : text) state = automaton_.after(state, static_cast<uint8_t>(c));
    return state;
  }
  bool fits(std::string_view text) { return automaton_.complete(after(text)); }
  bool begins(std::string_view text) { return after(text) != Automaton::kDead; }
  Automaton& automaton() { return automaton_; }

 private:
  Automaton automaton_;
};

inline bool fits(const Structure& structure, std::string_view text) {
  return Reader(structure).fits(text);
}

/// A vocabulary of given texts, the longest of which that begins the rest of a text is its next token.
/// Control tokens are given as their spelling between < and >.
class ListedTokenizer : public Tokenizer {
 public:
  explicit ListedTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      ids_.emplace(pieces_[i], static_cast<Token>(i));
      longest_ = std::max(longest_, pieces_[i].size());
    }
  }

  std::vector<Token> encode(std::string_view text, const EncodeOptions&) const override {
    std::vector<Token> tokens;
    while (!text.empty()) {
      size_t length = std::min(longest_, text.size());
      auto found = ids_.end();
      for (; length > 0; --length) {
        found = ids_.find(std::string(text.substr(0, length)));
        if (found != ids_.end() && !is_control(found->second)) break;
      }
      if (length == 0) {
        text.remove_prefix(1);  // a byte that the vocabulary lacks
        continue;
      }
      tokens.push_back(found->second);
      text.remove_prefix(length);
    }
    return tokens;
  }
  std::string piece_bytes(Token token, bool) const override {
    return is_control(token) ? std::string() : pieces_[static_cast<size_t>(token)];
  }
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  std::optional<Token> bos() const override { return std::nullopt; }
  std::optional<Token> eos() const override { return find("<eos>"); }
  bool is_control(Token token) const override {
    const std::string& text = pieces_[static_cast<size_t>(token)];
    return text.size() > 2 && text.front() == '<' && text.back() == '>';
  }
  std::optional<Token> find(std::string_view text) const override {
    const auto found = ids_.find(std::string(text));
    return found == ids_.end() ? std::nullopt : std::optional<Token>(found->second);
  }
  std::string_view vocabulary_text(Token token) const override { return pieces_[static_cast<size_t>(token)]; }
  std::string kind() const override { return "listed"; }

 private:
  std::vector<std::string> pieces_;
  std::map<std::string, Token> ids_;
  size_t longest_ = 0;
};

/// Every byte, some longer texts of the kind that vocabularies have (words, punctuation of JSON, parts of
/// characters), an end and a special token.
inline std::vector<std::string> listed_pieces() {
  std::vector<std::string> pieces = {"<eos>", "<call>"};
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  for (const char* piece :
       {"\"",       "\": ",  "\", \"",    "{\"",    "\"}",       "\"]",          "[\"",         "], [",
        "}, {",     "true",  "false",     "null",   "name",      "na",           "me",          "age",
        " the",     "the",   "\\n",       "\\u00",  "\\\"",      "00",           "12",          "123",
        "-1",       ".5",    "e+",        ", ",     ": ",        "{}",           "[]",          "\"\"",
        "\": \"",   "\": [", "\": {",     "é",      "日本",      "日\xE6",       "\x9C\xAC",    "\xF0\x9F",
        "\x98\x80", "ab\"",  "a\", \"b",  "x\\",    "\\ud83d",   "\\ude00",      "hello world", "  ",
        "\n",       "a\nb",  "<tool",     "_call>", "tool_call", "\"name\": \"", "\"}\n",       "}}",
        "]}",       "1, 2",  "\"a\", \"", "0.",     "1e5",       "nullx"}) {
    pieces.emplace_back(piece);
  }
  std::sort(pieces.begin() + 258, pieces.end());
  pieces.erase(std::unique(pieces.begin() + 258, pieces.end()), pieces.end());
  std::erase_if(pieces, [&, seen = std::map<std::string, int>()](const std::string& piece) mutable {
    return seen[piece]++ > 0;
  });
  return pieces;
}

}  // namespace verbatim::test
