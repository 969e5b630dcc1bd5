#include "templates/parser.h"

#include <algorithm>

#include "base/utf8.h"
#include "templates/expression_parser.h"

namespace verbatim::jinja {

namespace {

using Token = LexedToken::Kind;
using StatementKind = Statement::Kind;

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(lex(source)), expressions_(tokens_, template_) {}

  Template run() {
    template_.loop = expressions_.number_of("loop");
    template_.body = statements({});
    return std::move(template_);
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  static Statement make(StatementKind kind, int32_t line) {
    Statement statement;
    statement.kind = kind;
    statement.line = line;
    return statement;
  }

  /// Statements up to the tag of one of these names, of which the name is next; without names, to the end.
  Statements statements(Ends ends) {
    const SourceDepth inside(expressions_.depth(), tokens_.line());
    Statements all;
    while (!tokens_.is(Token::kEnd)) {
      const int32_t line = tokens_.line();
      if (tokens_.is(Token::kText)) {
        all.push_back(make(StatementKind::kText, line));
        all.back().text = make_text(tokens_.take().text, true);
      } else if (tokens_.is(Token::kOutputBegin)) {
        tokens_.take();
        all.push_back(make(StatementKind::kOutput, line));
        all.back().value = expressions_.tuple();
        tokens_.expect(Token::kOutputEnd, "}}");
      } else {
        tokens_.expect(Token::kTagBegin, "a tag");
        const auto is_next = [&](std::string_view name) { return tokens_.is_name(name); };
        if (std::any_of(ends.begin(), ends.end(), is_next)) return all;
        all.push_back(statement());
      }
    }
    if (ends.size() > 0) tokens_.unexpected(*std::prev(ends.end()));
    return all;
  }

  void end_of_tag() { tokens_.expect(Token::kTagEnd, "%}"); }

  /// What stands up to the end tag of this name, after the end of the present tag.
  Statements body(std::string_view end) {
    end_of_tag();
    Statements all = statements({end});
    tokens_.take();
    end_of_tag();
    return all;
  }

  Statement statement() {
    const int32_t line = tokens_.line();
    const std::string name = tokens_.take_name();
    if (name == "if") return conditional(line);
    if (name == "for") return loop(line);
    if (name == "set") return assignment(line);
    if (name == "macro") return macro(line);
    if (name == "call") return call(line);
    if (name == "filter") return filter(line);
    if (name == "with") return scope(line);
    if (name == "generation") {
      Statement all = make(StatementKind::kScope, line);
      all.body = body("endgeneration");
      return all;
    }
    if (name == "do") {
      Statement all = make(StatementKind::kDo, line);
      all.value = expressions_.tuple();
      end_of_tag();
      return all;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) bad_input("the chat template, line {}: '{}' stands in no loop", line, name);
      end_of_tag();
      return make(name == "break" ? StatementKind::kBreak : StatementKind::kContinue, line);
    }
    bad_input("the chat template, line {}: the statement '{}' is not known, or closes nothing", line,
              printable(name));
  }

  Statement conditional(int32_t line) {
    Statement all = make(StatementKind::kIf, line);
    while (true) {
      Branch& branch = all.branches.emplace_back();
      branch.condition = expressions_.tuple();
      end_of_tag();
      branch.body = statements({"elif", "else", "endif"});
      if (!tokens_.skip_name("elif")) break;
    }
    if (tokens_.skip_name("else")) {
      end_of_tag();
      all.branches.emplace_back().body = statements({"endif"});
    }
    tokens_.expect_name("endif");
    end_of_tag();
    return all;
  }

  Statement loop(int32_t line) {
    Statement all = make(StatementKind::kFor, line);
    all.target = target();
    if (!all.target.attribute.empty()) tokens_.unexpected("in");
    tokens_.expect_name("in");
    all.value = expressions_.iterable();
    if (tokens_.skip_name("if")) all.condition = expressions_.expression();
    if (tokens_.is_name("recursive"))
      bad_input("the chat template, line {}: recursive loops are not known", line);
    end_of_tag();
    ++loops_;
    all.body = statements({"else", "endfor"});
    --loops_;
    if (tokens_.skip_name("else")) {
      end_of_tag();
      all.otherwise = statements({"endfor"});
    }
    tokens_.expect_name("endfor");
    end_of_tag();
    return all;
  }

  Target target() {
    Target result;
    const bool closed = tokens_.skip_operator("(");
    result.names.push_back(expressions_.number_of(tokens_.take_name()));
    if (!closed && tokens_.skip_operator(".")) {
      result.attribute = tokens_.take_name();
      template_.read[static_cast<size_t>(result.names.front())] = true;
      return result;
    }
    while (tokens_.skip_operator(",")) {
      result.unpacks = true;
      if (!tokens_.is(Token::kName) || tokens_.is_name("in")) break;
      result.names.push_back(expressions_.number_of(tokens_.take_name()));
    }
    if (closed) tokens_.expect_operator(")");
    return result;
  }

  Statement assignment(int32_t line) {
    Statement all = make(StatementKind::kSet, line);
    all.target = target();
    if (tokens_.skip_operator("=")) {
      all.value = expressions_.tuple();
      end_of_tag();
      return all;
    }
    all.kind = StatementKind::kCapture;
    if (all.target.unpacks) tokens_.unexpected("=");
    if (tokens_.is_operator("|")) {
      all.value = expressions_.more_filters(expressions_.name(std::string(kCaptured), line));
    }
    all.body = in_block("endset");
    return all;
  }

  /// The body of a block in which a loop around it cannot be left.
  Statements in_block(std::string_view end) {
    const int32_t around = std::exchange(loops_, 0);
    Statements all = body(end);
    loops_ = around;
    return all;
  }

  void parameters(Macro& macro) {
    if (!tokens_.skip_operator("(")) return;
    while (!tokens_.skip_operator(")")) {
      std::string name = tokens_.take_name();
      const int32_t number = expressions_.number_of(name);
      macro.parameters.emplace_back(number, std::move(name));
      macro.defaults.push_back(tokens_.skip_operator("=") ? expressions_.expression() : nullptr);
      if (!tokens_.is_operator(")")) tokens_.expect_operator(",");
    }
  }

  Statement macro(int32_t line) {
    Statement all = make(StatementKind::kMacro, line);
    all.macro = std::make_unique<Macro>();
    all.macro->name = tokens_.take_name();
    all.target.names.push_back(expressions_.number_of(all.macro->name));
    all.macro->caller = expressions_.number_of("caller");
    if (!tokens_.is_operator("(")) tokens_.unexpected("(");
    parameters(*all.macro);
    all.macro->body = in_block("endmacro");
    return all;
  }

  Statement call(int32_t line) {
    Statement all = make(StatementKind::kCall, line);
    all.macro = std::make_unique<Macro>();
    all.macro->name = "caller";
    parameters(*all.macro);
    all.value = expressions_.expression();
    if (all.value->kind != Expression::Kind::kCall) tokens_.unexpected("a call");
    all.macro->body = in_block("endcall");
    return all;
  }

  Statement filter(int32_t line) {
    Statement all = make(StatementKind::kFilter, line);
    all.value = expressions_.filters(expressions_.name(std::string(kCaptured), line));
    all.target.names.push_back(expressions_.number_of(kCaptured));
    all.body = in_block("endfilter");
    return all;
  }

  Statement scope(int32_t line) {
    Statement all = make(StatementKind::kScope, line);
    while (!tokens_.is(Token::kTagEnd)) {
      Target where = target();
      tokens_.expect_operator("=");
      all.assignments.emplace_back(std::move(where), expressions_.expression());
      if (!tokens_.is(Token::kTagEnd)) tokens_.expect_operator(",");
    }
    all.body = body("endwith");
    return all;
  }

  Template template_;
  LexedTokens tokens_;
  ExpressionParser expressions_;
  int32_t loops_ = 0;
};

}  // namespace

Template parse(std::string_view source) {
  if (source.size() > kLongestSource) {
    bad_input("the chat template has {} bytes, more than the {} that are read", source.size(),
              kLongestSource);
  }
  if (const size_t bad = find_invalid_utf8(source); bad != std::string_view::npos) {
    bad_input("the chat template is not UTF-8 (byte {})", bad);
  }
  return Parser(source).run();
}

}  // namespace verbatim::jinja
