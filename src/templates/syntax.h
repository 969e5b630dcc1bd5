#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "templates/library.h"
#include "templates/value.h"

namespace verbatim::jinja {

struct Expression;
struct Statement;
using ExpressionPointer = std::unique_ptr<Expression>;
using Statements = std::vector<Statement>;

enum class Operator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kConcatenate,
  kEqual,
  kUnequal,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kIn,
  kNotIn,
};

struct Expression {
  enum class Kind {
    kConstant,
    kName,         ///< `name`
    kList,         ///< `operands`
    kTuple,        ///< `operands`
    kDict,         ///< `operands`: key, value, key, value, ...
    kAttribute,    ///< operand 0 . `text`
    kSubscript,    ///< operand 0 [ operand 1 ]
    kSlice,        ///< operand 0 [ operand 1 : operand 2 : operand 3 ], where 1 to 3 may be null
    kCall,         ///< operand 0 ( operands 1..., `named` )
    kFilter,       ///< operand 0 | `filter` ( operands 1..., `named` )
    kTest,         ///< operand 0 is `test` ( operands 1..., `named` )
    kNot,          ///< operand 0
    kNegate,       ///< operand 0
    kArithmetic,   ///< operand 0, operator 0, operand 1, operator 1, ..., from left to right
    kCompare,      ///< as kArithmetic; every comparison of neighbours must hold
    kAnd,          ///< `operands`
    kOr,           ///< `operands`
    kConditional,  ///< operand 0 if operand 1 else operand 2, which may be null
  };
  Kind kind = Kind::kConstant;
  int32_t line = 1;
  int32_t name = -1;
  std::string text;
  Value constant;
  std::vector<ExpressionPointer> operands;
  std::vector<Operator> operators;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
  Filter filter = nullptr;
  Test test = nullptr;
};

/// What a value is assigned to: a name, several names that a list is unpacked into, or an attribute of a
/// namespace.
struct Target {
  std::vector<int32_t> names;
  bool unpacks = false;
  std::string attribute;  ///< of the namespace names[0]; empty: the name itself
};

struct Branch {
  ExpressionPointer condition;  ///< null: else
  Statements body;
};

struct Macro {
  std::string name;
  std::vector<std::pair<int32_t, std::string>> parameters;  ///< the name's number and the name
  std::vector<ExpressionPointer> defaults;                  ///< of each parameter; null: none
  Statements body;
  int32_t caller = -1;  ///< the number of the name "caller"
};

struct Statement {
  enum class Kind {
    kText,     ///< `text`
    kOutput,   ///< `value`
    kIf,       ///< `branches`
    kFor,      ///< `target` in `value` if `condition`: `body`, or `otherwise` if there was nothing
    kSet,      ///< `target` = `value`
    kCapture,  ///< `target` = what `body` writes, through the filters of `value` if it is not null
    kFilter,   ///< what `body` writes, through the filters of `value`
    kMacro,    ///< `macro`
    kCall,     ///< `value` is a call; `macro` is what caller() does in it
    kScope,    ///< `body`, with `assignments` in a scope of its own
    kDo,       ///< `value`, for its effect
    kBreak,
    kContinue,
  };
  Kind kind = Kind::kText;
  int32_t line = 1;
  TextPointer text;
  ExpressionPointer value;
  ExpressionPointer condition;
  Target target;
  std::vector<Branch> branches;
  std::vector<std::pair<Target, ExpressionPointer>> assignments;
  Statements body;
  Statements otherwise;
  std::unique_ptr<Macro> macro;
};

/// A template that was parsed.
struct Template {
  std::vector<std::string> names;  ///< by number
  std::vector<bool> read;          ///< whether the name is read anywhere, by number
  int32_t loop = -1;               ///< the number of the name "loop"
  Statements body;
};

/// The name of the variable under which filters of a block find what it wrote; no template can spell it.
inline constexpr std::string_view kCaptured = "(captured)";

}  // namespace verbatim::jinja
