#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "templates/lexer.h"
#include "templates/machine.h"

namespace verbatim::jinja {

/// The words of a template, from which a parser takes one after the other.
class LexedTokens {
 public:
  explicit LexedTokens(std::vector<LexedToken> tokens) : tokens_(std::move(tokens)) {}

  const LexedToken& now() const { return tokens_[at_]; }
  const LexedToken& after() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  int32_t line() const { return now().line; }

  LexedToken take() {
    LexedToken token = now();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool is(LexedToken::Kind kind) const { return now().kind == kind; }
  bool is_operator(std::string_view text) const {
    return is(LexedToken::Kind::kOperator) && now().text == text;
  }
  bool is_name(std::string_view text) const { return is(LexedToken::Kind::kName) && now().text == text; }
  bool skip_operator(std::string_view text) {
    if (!is_operator(text)) return false;
    take();
    return true;
  }
  bool skip_name(std::string_view text) {
    if (!is_name(text)) return false;
    take();
    return true;
  }
  void expect_operator(std::string_view text) {
    if (!skip_operator(text)) unexpected(text);
  }
  void expect_name(std::string_view text) {
    if (!skip_name(text)) unexpected(text);
  }
  void expect(LexedToken::Kind kind, std::string_view text) {
    if (!is(kind)) unexpected(text);
    take();
  }
  std::string take_name() {
    if (!is(LexedToken::Kind::kName)) unexpected("a name");
    return take().text;
  }
  [[noreturn]] void unexpected(std::string_view wanted) const {
    bad_input("the chat template, line {}: '{}' was expected where {} is", line(), wanted, shown(now()));
  }

 private:
  static std::string shown(const LexedToken& token) {
    using Kind = LexedToken::Kind;
    switch (token.kind) {
      case Kind::kEnd:
        return "the end of the template";
      case Kind::kTagEnd:
      case Kind::kOutputEnd:
        return "the end of the tag";
      case Kind::kText:
        return "text";
      case Kind::kTagBegin:
      case Kind::kOutputBegin:
        return "a tag";
      default:
        return "'" + printable(token.text) + "'";
    }
  }

  std::vector<LexedToken> tokens_;
  size_t at_ = 0;
};

/// Counts how many statements and expressions are inside each other while it lives.
class SourceDepth {
 public:
  SourceDepth(int32_t& depth, int32_t line) : depth_(depth) {
    if (depth_ >= kDeepestSource) bad_input("the chat template, line {}: it nests too deeply", line);
    ++depth_;
  }
  ~SourceDepth() { --depth_; }
  SourceDepth(const SourceDepth&) = delete;
  SourceDepth& operator=(const SourceDepth&) = delete;

 private:
  int32_t& depth_;
};

}  // namespace verbatim::jinja
