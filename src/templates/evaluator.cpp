#include "templates/evaluator.h"

#include "templates/library.h"
#include "templates/operations.h"
#include "templates/written.h"

namespace verbatim::jinja {

namespace {

/// What comes after a statement.
enum class Flow { kNext, kBreak, kContinue };

class Evaluator {
 public:
  Evaluator(const Template& source, Machine& machine, std::string_view variables,
            const std::vector<OwnText>& own)
      : template_(source), machine_(machine), globals_(source.names.size()) {
    const Dict& given = *read_variables(machine, variables);
    for (size_t i = 0; i < globals_.size(); ++i) {
      const std::string& name = source.names[i];
      if (const Value* value = given.find(name)) {
        globals_[i] = *value;
      } else if (const std::string_view function = find_function(name); !function.empty()) {
        globals_[i] = machine.callable({.kind = Callable::Kind::kFunction, .name = function});
      }
      for (const auto& [own_name, text] : own) {
        if (own_name == name) globals_[i] = machine.text(text, true);
      }
    }
  }

  TracedText run() {
    scope_ = machine_.scope(nullptr);
    return captured([&] { execute(template_.body); });
  }

 private:
  using Kind = Expression::Kind;

  // Names.

  Value look_up(int32_t name) {
    for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
      machine_.step();
      for (const auto& [own, value] : scope->names) {
        if (own == name) return value;
      }
    }
    return globals_[static_cast<size_t>(name)];
  }

  void define(int32_t name, Value value) {
    for (auto& [own, old] : scope_->names) {
      if (own == name) {
        old = std::move(value);
        return;
      }
    }
    machine_.take(sizeof(Value) + sizeof(int64_t));
    scope_->names.emplace_back(name, std::move(value));
  }

  const std::string& spelled(int32_t name) const { return template_.names[static_cast<size_t>(name)]; }

  void assign(const Target& target, const Value& value) {
    if (!target.attribute.empty()) {
      const Value object = look_up(target.names.front());
      auto* const* dict = std::get_if<Dict*>(&object);
      if (dict == nullptr || !(*dict)->is_namespace) {
        machine_.fail("'{}' is no namespace, so nothing in it can be set", spelled(target.names.front()));
      }
      machine_.set(**dict, machine_.text(target.attribute, true), value);
    } else if (!target.unpacks) {
      define(target.names.front(), value);
    } else {
      const std::vector<Value> items = items_of(machine_, value)->items;
      if (items.size() != target.names.size()) {
        machine_.fail("{} values cannot be given to {} names", items.size(), target.names.size());
      }
      for (size_t i = 0; i < items.size(); ++i) define(target.names[i], items[i]);
    }
  }

  // Statements.

  /// What `write` writes.
  template <typename Write>
  TracedText captured(const Write& write) {
    TracedText text;
    TracedText* const around = std::exchange(output_, &text);
    write();  // an error ends the rendering, so nothing needs to be put back
    output_ = around;
    return text;
  }

  /// Does something in a scope of its own.
  template <typename Act>
  void in_scope(Scope* scope, const Act& act) {
    Scope* const around = std::exchange(scope_, scope);
    act();
    scope_ = around;
  }

  void write(const TracedText& text) {
    machine_.scan(text.size());
    machine_.check_length(output_->size() + text.size());
    output_->append(text);
  }

  Flow execute(const Statements& statements) {
    for (const Statement& statement : statements) {
      const Flow flow = execute(statement);
      if (flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
  }

  Flow execute(const Statement& statement) {
    const Machine::Depth inside(machine_);
    machine_.line = statement.line;
    machine_.step();
    switch (statement.kind) {
      case Statement::Kind::kText:
        write(*statement.text);
        break;
      case Statement::Kind::kOutput:
        write(written(machine_, evaluate(*statement.value)));
        break;
      case Statement::Kind::kIf:
        return choose(statement);
      case Statement::Kind::kFor:
        loop(statement);
        break;
      case Statement::Kind::kSet:
        assign(statement.target, evaluate(*statement.value));
        break;
      case Statement::Kind::kCapture:
      case Statement::Kind::kFilter:
        capture(statement);
        break;
      case Statement::Kind::kMacro:
        define(statement.target.names.front(), macro_of(*statement.macro));
        break;
      case Statement::Kind::kCall:
        write(written(machine_, call(*statement.value, macro_of(*statement.macro))));
        break;
      case Statement::Kind::kScope:
        return scope(statement);
      case Statement::Kind::kDo:
        evaluate(*statement.value);
        break;
      case Statement::Kind::kBreak:
        return Flow::kBreak;
      case Statement::Kind::kContinue:
        return Flow::kContinue;
    }
    return Flow::kNext;
  }

  Flow choose(const Statement& statement) {
    for (const Branch& branch : statement.branches) {
      if (branch.condition == nullptr || truth(evaluate(*branch.condition))) return execute(branch.body);
    }
    return Flow::kNext;
  }

  Flow scope(const Statement& statement) {
    Flow flow = Flow::kNext;
    in_scope(machine_.scope(scope_), [&] {
      for (const auto& [target, value] : statement.assignments) assign(target, evaluate(*value));
      flow = execute(statement.body);
    });
    return flow;
  }

  void capture(const Statement& statement) {
    Value result;
    in_scope(machine_.scope(scope_), [&] {
      result = machine_.text(captured([&] { execute(statement.body); }));
      if (statement.value == nullptr) return;
      // The filters' input is the one name in them that no template can spell.
      const Expression* innermost = statement.value.get();
      while (innermost->kind != Kind::kName) innermost = innermost->operands[0].get();
      define(innermost->name, result);
      result = evaluate(*statement.value);
    });
    if (statement.kind == Statement::Kind::kFilter) {
      write(written(machine_, result));
    } else {
      assign(statement.target, result);
    }
  }

  /// The items of a loop: those for which its condition holds.
  List* looped(const Statement& statement) {
    List* const all = items_of(machine_, evaluate(*statement.value));
    if (statement.condition == nullptr) return all;
    List* const chosen = machine_.list();
    in_scope(machine_.scope(scope_), [&] {
      for (size_t i = 0; i < all->items.size(); ++i) {
        const Value item = all->items[i];
        assign(statement.target, item);
        if (truth(evaluate(*statement.condition))) machine_.append(*chosen, item);
      }
    });
    return chosen;
  }

  void loop(const Statement& statement) {
    Loop* const loop = machine_.loop();
    loop->items = looped(statement);
    const Value around = look_up(template_.loop);
    if (auto* const* outer = std::get_if<Loop*>(&around)) loop->depth = (*outer)->depth + 1;
    Scope* const inner = machine_.scope(scope_);
    bool any = false;
    in_scope(inner, [&] {
      for (; loop->index < loop->items->items.size(); ++loop->index) {
        any = true;
        machine_.step();
        inner->names.clear();
        const Value item = loop->items->items[loop->index];
        define(template_.loop, loop);
        assign(statement.target, item);
        if (execute(statement.body) == Flow::kBreak) break;
      }
    });
    if (!any) execute(statement.otherwise);
  }

  // Calls.

  Value macro_of(const Macro& macro) {
    return machine_.callable(
        {.kind = Callable::Kind::kMacro, .name = macro.name, .macro = &macro, .scope = scope_});
  }

  Value call_macro(const Callable& callable, const Arguments& arguments, const Value& caller) {
    const Macro& macro = *callable.macro;
    if (macros_ >= kDeepestMacros) machine_.fail("macros call each other too deeply");
    if (arguments.positional.size() > macro.parameters.size()) {
      machine_.fail("the macro '{}' was given {} arguments, and takes {}", macro.name,
                    arguments.positional.size(), macro.parameters.size());
    }
    for (const auto& [name, value] : arguments.named) {
      bool known = false;
      for (const auto& parameter : macro.parameters) known |= parameter.second == name;
      if (!known) machine_.fail("the macro '{}' has no parameter '{}'", macro.name, name);
    }
    ++macros_;
    TracedText text;
    in_scope(machine_.scope(callable.scope), [&] {
      for (size_t i = 0; i < macro.parameters.size(); ++i) {
        const auto& [number, name] = macro.parameters[i];
        const Value* const given = arguments.find(i, name);
        Value value = given != nullptr               ? *given
                      : macro.defaults[i] != nullptr ? evaluate(*macro.defaults[i])
                                                     : Value();
        define(number, std::move(value));
      }
      if (macro.caller >= 0 && !is<Undefined>(caller)) define(macro.caller, caller);
      text = captured([&] { execute(macro.body); });
    });
    --macros_;
    return machine_.text(std::move(text));
  }

  Arguments arguments_of(const Expression& expression) {
    Arguments arguments;
    for (size_t i = 1; i < expression.operands.size(); ++i) {
      arguments.positional.push_back(evaluate(*expression.operands[i]));
    }
    for (const auto& [name, value] : expression.named) arguments.named.emplace_back(name, evaluate(*value));
    return arguments;
  }

  Value call(const Expression& expression, const Value& caller) {
    const Value callee = evaluate(*expression.operands[0]);
    const Arguments arguments = arguments_of(expression);
    machine_.line = expression.line;
    auto* const* callable = std::get_if<Callable*>(&callee);
    if (callable == nullptr) {
      const Expression& called = *expression.operands[0];
      machine_.fail("'{}' is {}, which cannot be called",
                    called.kind == Kind::kName ? spelled(called.name) : called.text, type_name(callee));
    }
    const Callable& target = **callable;
    switch (target.kind) {
      case Callable::Kind::kMacro:
        return call_macro(target, arguments, caller);
      case Callable::Kind::kFunction:
        return call_function(machine_, target.name, arguments);
      default:
        return call_method(machine_, target.self, target.name, arguments);
    }
  }

  // Expressions.

  Value operand(const Expression& expression, size_t place) {
    const ExpressionPointer& operand = expression.operands[place];
    return operand == nullptr ? Value() : evaluate(*operand);
  }

  Value evaluate(const Expression& expression) {
    const Machine::Depth inside(machine_);
    machine_.step();
    machine_.line = expression.line;
    switch (expression.kind) {
      case Kind::kConstant:
        return expression.constant;
      case Kind::kName:
        return look_up(expression.name);
      case Kind::kAnd:
      case Kind::kOr:
        return either(expression);
      case Kind::kNot:
        return !truth(operand(expression, 0));
      case Kind::kConditional:
        return operand(expression, truth(operand(expression, 1)) ? 0 : 2);
      case Kind::kCall:
        return call(expression, Value());
      default:
        return evaluate_parts(expression);
    }
  }

  Value evaluate_parts(const Expression& expression) {
    switch (expression.kind) {
      case Kind::kList:
      case Kind::kTuple:
        return list(expression);
      case Kind::kDict:
        return dict(expression);
      case Kind::kArithmetic:
        return arithmetic(expression);
      case Kind::kCompare:
        return compare(expression);
      case Kind::kSlice:
        return slice(expression);
      default:
        return evaluate_first(expression, operand(expression, 0));
    }
  }

  Value evaluate_first(const Expression& expression, const Value& first) {
    machine_.line = expression.line;
    switch (expression.kind) {
      case Kind::kAttribute:
        if (is<Undefined>(first) && expression.operands[0]->kind == Kind::kName) {
          machine_.fail("'{}' is undefined, so it has no '{}'", spelled(expression.operands[0]->name),
                        expression.text);
        }
        return attribute_of(machine_, first, expression.text);
      case Kind::kSubscript:
        return element_of(machine_, first, operand(expression, 1));
      case Kind::kFilter:
        return expression.filter(machine_, first, arguments_of(expression));
      case Kind::kTest:
        return expression.test(machine_, first, arguments_of(expression));
      default:
        return negate(machine_, first);
    }
  }

  Value either(const Expression& expression) {
    const bool stops_at = expression.kind == Kind::kOr;
    Value value;
    for (const ExpressionPointer& part : expression.operands) {
      value = evaluate(*part);
      if (truth(value) == stops_at) break;
    }
    return value;
  }

  Value list(const Expression& expression) {
    List* const list = machine_.list(expression.kind == Kind::kTuple);
    for (const ExpressionPointer& part : expression.operands) machine_.append(*list, evaluate(*part));
    return list;
  }

  Value dict(const Expression& expression) {
    Dict* const dict = machine_.dict();
    for (size_t i = 0; i + 1 < expression.operands.size(); i += 2) {
      const Value key = operand(expression, i);
      machine_.set(*dict, key, operand(expression, i + 1));
    }
    return dict;
  }

  Value arithmetic(const Expression& expression) {
    Value result = operand(expression, 0);
    for (size_t i = 0; i < expression.operators.size(); ++i) {
      const Value next = operand(expression, i + 1);
      machine_.line = expression.line;
      result = operate(machine_, expression.operators[i], result, next);
    }
    return result;
  }

  Value compare(const Expression& expression) {
    Value left = operand(expression, 0);
    for (size_t i = 0; i < expression.operators.size(); ++i) {
      Value right = operand(expression, i + 1);
      machine_.line = expression.line;
      if (!truth(operate(machine_, expression.operators[i], left, right))) return false;
      left = std::move(right);
    }
    return true;
  }

  Value slice(const Expression& expression) {
    const Value whole = operand(expression, 0);
    const Value begin = operand(expression, 1);
    const Value end = operand(expression, 2);
    return slice_of(machine_, whole, begin, end, operand(expression, 3));
  }

  const Template& template_;
  Machine& machine_;
  std::vector<Value> globals_;  ///< by the number of the name
  Scope* scope_ = nullptr;
  TracedText* output_ = nullptr;
  int32_t macros_ = 0;
};

}  // namespace

TracedText render(const Template& source, std::string_view variables, const std::vector<OwnText>& own,
                  std::time_t now) {
  Machine machine(variables.size(), now);
  return Evaluator(source, machine, variables, own).run();
}

}  // namespace verbatim::jinja
