#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "templates/lexed_tokens.h"
#include "templates/syntax.h"

namespace verbatim::jinja {

/// Reads expressions from the words of a template, and numbers the names in them.
class ExpressionParser {
 public:
  ExpressionParser(LexedTokens& tokens, Template& result) : tokens_(tokens), template_(result) {}

  /// An expression, as wide as it goes.
  ExpressionPointer expression() { return conditional(); }
  /// An expression, or several with commas between them, which are a tuple.
  ExpressionPointer tuple();
  /// What stands between `for` and the end of what is looped over: no "a if b else c" outside of brackets.
  ExpressionPointer iterable();
  /// Filters behind a block's name: "upper | trim", applied to `input`.
  ExpressionPointer filters(ExpressionPointer input);
  /// Filters behind a value, if there are any: "| upper".
  ExpressionPointer more_filters(ExpressionPointer input);

  int32_t number_of(std::string_view name);
  ExpressionPointer name(const std::string& name, int32_t line);
  int32_t& depth() { return depth_; }

 private:
  ExpressionPointer conditional();
  ExpressionPointer disjunction();
  ExpressionPointer conjunction();
  ExpressionPointer negation();
  ExpressionPointer comparison();
  ExpressionPointer chain(int32_t level);
  ExpressionPointer unary(bool with_filters);
  ExpressionPointer primary();
  ExpressionPointer number();
  ExpressionPointer parenthesized();
  ExpressionPointer list();
  ExpressionPointer dictionary();
  ExpressionPointer postfix(ExpressionPointer value);
  ExpressionPointer filtered(ExpressionPointer value);
  ExpressionPointer subscript(ExpressionPointer value);
  ExpressionPointer test(ExpressionPointer value);
  ExpressionPointer filter(ExpressionPointer value);
  void arguments(Expression& call);

  LexedTokens& tokens_;
  Template& template_;
  std::unordered_map<std::string, int32_t> numbers_;
  int32_t depth_ = 0;
};

}  // namespace verbatim::jinja
