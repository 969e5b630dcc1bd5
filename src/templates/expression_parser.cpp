#include "templates/expression_parser.h"

#include <array>
#include <charconv>
#include <optional>

namespace verbatim::jinja {

namespace {

using Token = LexedToken::Kind;
using ExpressionKind = Expression::Kind;

ExpressionPointer make(ExpressionKind kind, int32_t line) {
  auto expression = std::make_unique<Expression>();
  expression->kind = kind;
  expression->line = line;
  return expression;
}

ExpressionPointer make(ExpressionKind kind, int32_t line, ExpressionPointer operand) {
  ExpressionPointer expression = make(kind, line);
  expression->operands.push_back(std::move(operand));
  return expression;
}

ExpressionPointer constant(Value value, int32_t line) {
  ExpressionPointer expression = make(ExpressionKind::kConstant, line);
  expression->constant = std::move(value);
  return expression;
}

struct OperatorName {
  std::string_view text;
  Operator meaning;
  int32_t level;  ///< how tightly it binds
};

constexpr int32_t kTightest = 3;
constexpr std::array<OperatorName, 8> kArithmeticOperators = {{{"+", Operator::kAdd, 0},
                                                               {"-", Operator::kSubtract, 0},
                                                               {"~", Operator::kConcatenate, 1},
                                                               {"*", Operator::kMultiply, 2},
                                                               {"/", Operator::kDivide, 2},
                                                               {"//", Operator::kFloorDivide, 2},
                                                               {"%", Operator::kModulo, 2},
                                                               {"**", Operator::kPower, 3}}};
constexpr std::array<OperatorName, 6> kComparisons = {{{"==", Operator::kEqual, 0},
                                                       {"!=", Operator::kUnequal, 0},
                                                       {"<", Operator::kLess, 0},
                                                       {"<=", Operator::kLessOrEqual, 0},
                                                       {">", Operator::kGreater, 0},
                                                       {">=", Operator::kGreaterOrEqual, 0}}};

std::optional<Operator> operator_here(const LexedTokens& tokens, int32_t level) {
  for (const OperatorName& name : kArithmeticOperators) {
    if (name.level == level && tokens.is_operator(name.text)) return name.meaning;
  }
  return std::nullopt;
}

/// Takes a comparison, if one is next.
std::optional<Operator> take_comparison(LexedTokens& tokens) {
  for (const OperatorName& name : kComparisons) {
    if (tokens.skip_operator(name.text)) return name.meaning;
  }
  if (tokens.skip_name("in")) return Operator::kIn;
  if (tokens.is_name("not") && tokens.after().kind == Token::kName && tokens.after().text == "in") {
    tokens.take();
    tokens.take();
    return Operator::kNotIn;
  }
  return std::nullopt;
}

}  // namespace

int32_t ExpressionParser::number_of(std::string_view name) {
  const auto [place, added] =
      numbers_.emplace(std::string(name), static_cast<int32_t>(template_.names.size()));
  if (added) {
    template_.names.emplace_back(name);
    template_.read.push_back(false);
  }
  return place->second;
}

ExpressionPointer ExpressionParser::name(const std::string& name, int32_t line) {
  ExpressionPointer expression = make(ExpressionKind::kName, line);
  expression->name = number_of(name);
  template_.read[static_cast<size_t>(expression->name)] = true;
  return expression;
}

ExpressionPointer ExpressionParser::tuple() {
  const int32_t line = tokens_.line();
  ExpressionPointer first = expression();
  if (!tokens_.is_operator(",")) return first;
  ExpressionPointer all = make(ExpressionKind::kTuple, line, std::move(first));
  while (tokens_.skip_operator(",")) {
    if (tokens_.is(Token::kTagEnd) || tokens_.is(Token::kOutputEnd) || tokens_.is_operator(")")) break;
    all->operands.push_back(expression());
  }
  return all;
}

ExpressionPointer ExpressionParser::iterable() {
  const int32_t line = tokens_.line();
  ExpressionPointer first = disjunction();
  if (!tokens_.is_operator(",")) return first;
  ExpressionPointer all = make(ExpressionKind::kTuple, line, std::move(first));
  while (tokens_.skip_operator(",")) {
    if (tokens_.is(Token::kTagEnd)) break;
    all->operands.push_back(disjunction());
  }
  return all;
}

ExpressionPointer ExpressionParser::conditional() {
  const SourceDepth inside(depth_, tokens_.line());
  ExpressionPointer value = disjunction();
  int32_t count = 0;
  while (tokens_.is_name("if")) {
    if (++count > kDeepestSource) tokens_.unexpected("the end of the expression");
    const int32_t line = tokens_.line();
    tokens_.take();
    ExpressionPointer all = make(ExpressionKind::kConditional, line, std::move(value));
    all->operands.push_back(disjunction());
    all->operands.push_back(tokens_.skip_name("else") ? conditional() : nullptr);
    value = std::move(all);
  }
  return value;
}

ExpressionPointer ExpressionParser::disjunction() {
  ExpressionPointer first = conjunction();
  if (!tokens_.is_name("or")) return first;
  ExpressionPointer all = make(ExpressionKind::kOr, tokens_.line(), std::move(first));
  while (tokens_.skip_name("or")) all->operands.push_back(conjunction());
  return all;
}

ExpressionPointer ExpressionParser::conjunction() {
  ExpressionPointer first = negation();
  if (!tokens_.is_name("and")) return first;
  ExpressionPointer all = make(ExpressionKind::kAnd, tokens_.line(), std::move(first));
  while (tokens_.skip_name("and")) all->operands.push_back(negation());
  return all;
}

ExpressionPointer ExpressionParser::negation() {
  const int32_t line = tokens_.line();
  bool odd = false;
  bool any = false;
  while (tokens_.skip_name("not")) {
    odd = !odd;
    any = true;
  }
  ExpressionPointer value = comparison();
  if (!any) return value;
  value = make(ExpressionKind::kNot, line, std::move(value));
  return odd ? std::move(value) : make(ExpressionKind::kNot, line, std::move(value));
}

ExpressionPointer ExpressionParser::comparison() {
  const int32_t line = tokens_.line();
  ExpressionPointer first = chain(0);
  std::optional<Operator> meaning = take_comparison(tokens_);
  if (!meaning) return first;
  ExpressionPointer all = make(ExpressionKind::kCompare, line, std::move(first));
  for (; meaning; meaning = take_comparison(tokens_)) {
    all->operators.push_back(*meaning);
    all->operands.push_back(chain(0));
  }
  return all;
}

ExpressionPointer ExpressionParser::chain(int32_t level) {
  const int32_t line = tokens_.line();
  const auto operand = [&] { return level == kTightest ? unary(true) : chain(level + 1); };
  ExpressionPointer first = operand();
  std::optional<Operator> meaning = operator_here(tokens_, level);
  if (!meaning) return first;
  ExpressionPointer all = make(ExpressionKind::kArithmetic, line, std::move(first));
  for (; meaning; meaning = operator_here(tokens_, level)) {
    tokens_.take();
    all->operators.push_back(*meaning);
    all->operands.push_back(operand());
  }
  return all;
}

ExpressionPointer ExpressionParser::unary(bool with_filters) {
  const SourceDepth inside(depth_, tokens_.line());
  const int32_t line = tokens_.line();
  ExpressionPointer value;
  if (tokens_.skip_operator("-")) {
    value = make(ExpressionKind::kNegate, line, unary(false));
  } else if (tokens_.skip_operator("+")) {
    value = unary(false);
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filtered(std::move(value)) : std::move(value);
}

ExpressionPointer ExpressionParser::primary() {
  const int32_t line = tokens_.line();
  if (tokens_.is(Token::kString)) {
    std::string text;
    while (tokens_.is(Token::kString)) text += tokens_.take().text;
    return constant(make_text(std::move(text), true), line);
  }
  if (tokens_.is(Token::kInteger) || tokens_.is(Token::kFloat)) return number();
  if (tokens_.is_operator("(")) return parenthesized();
  if (tokens_.is_operator("[")) return list();
  if (tokens_.is_operator("{")) return dictionary();
  if (!tokens_.is(Token::kName)) tokens_.unexpected("an expression");
  const std::string text = tokens_.take().text;
  if (text == "true" || text == "True") return constant(true, line);
  if (text == "false" || text == "False") return constant(false, line);
  if (text == "none" || text == "None") return constant(None{}, line);
  return name(text, line);
}

ExpressionPointer ExpressionParser::number() {
  const LexedToken token = tokens_.take();
  const char* const end = token.text.data() + token.text.size();
  if (token.kind == Token::kInteger) {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(token.text.data(), end, value);
    if (error == std::errc() && stop == end) return constant(value, token.line);
  } else {
    double value = 0;
    const auto [stop, error] = std::from_chars(token.text.data(), end, value);
    if (error == std::errc() && stop == end) return constant(value, token.line);
  }
  bad_input("the chat template, line {}: the number {} is out of range", token.line, printable(token.text));
}

ExpressionPointer ExpressionParser::parenthesized() {
  const int32_t line = tokens_.line();
  tokens_.take();
  if (tokens_.skip_operator(")")) return make(ExpressionKind::kTuple, line);
  ExpressionPointer value = tuple();
  tokens_.expect_operator(")");
  return value;
}

ExpressionPointer ExpressionParser::list() {
  ExpressionPointer value = make(ExpressionKind::kList, tokens_.line());
  tokens_.take();
  while (!tokens_.skip_operator("]")) {
    value->operands.push_back(expression());
    if (!tokens_.is_operator("]")) tokens_.expect_operator(",");
  }
  return value;
}

ExpressionPointer ExpressionParser::dictionary() {
  ExpressionPointer value = make(ExpressionKind::kDict, tokens_.line());
  tokens_.take();
  while (!tokens_.skip_operator("}")) {
    value->operands.push_back(expression());
    tokens_.expect_operator(":");
    value->operands.push_back(expression());
    if (!tokens_.is_operator("}")) tokens_.expect_operator(",");
  }
  return value;
}

ExpressionPointer ExpressionParser::postfix(ExpressionPointer value) {
  for (int32_t count = 0;; ++count) {
    if (count > kDeepestSource) tokens_.unexpected("the end of the expression");
    const int32_t line = tokens_.line();
    if (tokens_.skip_operator(".")) {
      value = make(ExpressionKind::kAttribute, line, std::move(value));
      if (tokens_.is(Token::kInteger)) {
        value->kind = ExpressionKind::kSubscript;
        value->operands.push_back(number());
      } else {
        value->text = tokens_.take_name();
      }
    } else if (tokens_.is_operator("[")) {
      value = subscript(std::move(value));
    } else if (tokens_.is_operator("(")) {
      value = make(ExpressionKind::kCall, line, std::move(value));
      arguments(*value);
    } else {
      return value;
    }
  }
}

ExpressionPointer ExpressionParser::filtered(ExpressionPointer value) {
  for (int32_t count = 0;; ++count) {
    if (count > kDeepestSource) tokens_.unexpected("the end of the expression");
    const int32_t line = tokens_.line();
    if (tokens_.skip_operator("|")) {
      value = filter(std::move(value));
    } else if (tokens_.skip_name("is")) {
      value = test(std::move(value));
    } else if (tokens_.is_operator("(")) {
      value = make(ExpressionKind::kCall, line, std::move(value));
      arguments(*value);
    } else {
      return value;
    }
  }
}

ExpressionPointer ExpressionParser::subscript(ExpressionPointer value) {
  const int32_t line = tokens_.line();
  tokens_.take();
  ExpressionPointer all = make(ExpressionKind::kSubscript, line, std::move(value));
  const auto part = [&]() -> ExpressionPointer {
    return tokens_.is_operator(":") || tokens_.is_operator("]") ? nullptr : expression();
  };
  if (tokens_.is_operator("]")) tokens_.unexpected("an expression");
  all->operands.push_back(part());
  while (tokens_.is_operator(":") && all->operands.size() < 4) {
    tokens_.take();
    all->kind = ExpressionKind::kSlice;
    all->operands.push_back(part());
  }
  tokens_.expect_operator("]");
  if (all->kind == ExpressionKind::kSlice) all->operands.resize(4);
  return all;
}

ExpressionPointer ExpressionParser::test(ExpressionPointer value) {
  const int32_t line = tokens_.line();
  const bool negated = tokens_.skip_name("not");
  ExpressionPointer all = make(ExpressionKind::kTest, line, std::move(value));
  all->text = tokens_.take_name();
  all->test = find_test(all->text);
  if (all->test == nullptr) {
    bad_input("the chat template, line {}: there is no test '{}'", line, printable(all->text));
  }
  const bool keyword = tokens_.is_name("else") || tokens_.is_name("or") || tokens_.is_name("and") ||
                       tokens_.is_name("if") || tokens_.is_name("is") || tokens_.is_name("in") ||
                       tokens_.is_name("not") || tokens_.is_name("recursive");
  if (tokens_.is_operator("(")) {
    arguments(*all);
  } else if ((tokens_.is(Token::kName) && !keyword) || tokens_.is(Token::kString) ||
             tokens_.is(Token::kInteger) || tokens_.is(Token::kFloat) || tokens_.is_operator("[") ||
             tokens_.is_operator("{")) {
    all->operands.push_back(postfix(primary()));
  }
  return negated ? make(ExpressionKind::kNot, line, std::move(all)) : std::move(all);
}

ExpressionPointer ExpressionParser::filter(ExpressionPointer value) {
  const int32_t line = tokens_.line();
  ExpressionPointer all = make(ExpressionKind::kFilter, line, std::move(value));
  all->text = tokens_.take_name();
  all->filter = find_filter(all->text);
  if (all->filter == nullptr) {
    bad_input("the chat template, line {}: there is no filter '{}'", line, printable(all->text));
  }
  if (tokens_.is_operator("(")) arguments(*all);
  return all;
}

ExpressionPointer ExpressionParser::filters(ExpressionPointer input) {
  return filtered(filter(std::move(input)));
}

ExpressionPointer ExpressionParser::more_filters(ExpressionPointer input) {
  return filtered(std::move(input));
}

void ExpressionParser::arguments(Expression& call) {
  tokens_.expect_operator("(");
  while (!tokens_.skip_operator(")")) {
    const bool named =
        tokens_.is(Token::kName) && tokens_.after().kind == Token::kOperator && tokens_.after().text == "=";
    if (named) {
      std::string name = tokens_.take_name();
      tokens_.take();
      call.named.emplace_back(std::move(name), expression());
    } else {
      if (!call.named.empty()) tokens_.unexpected("a named argument");
      call.operands.push_back(expression());
    }
    if (!tokens_.is_operator(")")) tokens_.expect_operator(",");
  }
}

}  // namespace verbatim::jinja
