#include <algorithm>
#include <unordered_map>

#include "templates/library.h"
#include "templates/operations.h"
#include "templates/text_operations.h"

namespace verbatim::jinja {

namespace {

template <typename... Types>
bool test_type(Machine&, const Value& input, const Arguments&) {
  return (is<Types>(input) || ...);
}

bool test_defined(Machine&, const Value& input, const Arguments&) {
  return !is<Undefined>(input);
}

bool test_mapping(Machine&, const Value& input, const Arguments&) {
  auto* const* dict = std::get_if<Dict*>(&input);
  return dict != nullptr && !(*dict)->is_namespace;
}

bool test_iterable(Machine& machine, const Value& input, const Arguments& arguments) {
  return test_type<Undefined, TextPointer, List*, Loop*>(machine, input, arguments) ||
         test_mapping(machine, input, arguments);
}

bool test_sequence(Machine& machine, const Value& input, const Arguments& arguments) {
  return test_type<Undefined, TextPointer, List*>(machine, input, arguments) ||
         test_mapping(machine, input, arguments);
}

template <bool kValue>
bool test_boolean_value(Machine&, const Value& input, const Arguments&) {
  const auto* boolean = std::get_if<bool>(&input);
  return boolean != nullptr && *boolean == kValue;
}

const Value& other_of(Machine& machine, const Arguments& arguments) {
  const Value* const other = arguments.find(0, "other");
  if (other == nullptr) machine.fail("a test wants a value to compare with");
  return *other;
}

template <Operator kOperator>
bool test_compares(Machine& machine, const Value& input, const Arguments& arguments) {
  return truth(operate(machine, kOperator, input, other_of(machine, arguments)));
}

bool test_same(Machine& machine, const Value& input, const Arguments& arguments) {
  const Value& other = other_of(machine, arguments);
  if (input.index() != other.index()) return false;
  if (auto* const* list = std::get_if<List*>(&input)) return *list == std::get<List*>(other);
  if (auto* const* dict = std::get_if<Dict*>(&input)) return *dict == std::get<Dict*>(other);
  return equal(machine, input, other);
}

template <int64_t kRest>
bool test_parity(Machine& machine, const Value& input, const Arguments&) {
  return std::abs(integer_argument(machine, &input, 0) % 2) == kRest;
}

bool test_divisible(Machine& machine, const Value& input, const Arguments& arguments) {
  const Value& by = other_of(machine, arguments);
  return equal(machine, operate(machine, Operator::kModulo, input, by), int64_t{0});
}

template <bool kUpper>
bool test_case(Machine& machine, const Value& input, const Arguments&) {
  return truth(call_method(machine, machine.text(text_argument(machine, &input, "is upper")),
                           kUpper ? "isupper" : "islower", {}));
}

const std::unordered_map<std::string_view, Test>& tests() {
  static const std::unordered_map<std::string_view, Test> kTests = {
      {"defined", test_defined},
      {"undefined", test_type<Undefined>},
      {"none", test_type<None>},
      {"string", test_type<TextPointer>},
      {"mapping", test_mapping},
      {"iterable", test_iterable},
      {"sequence", test_sequence},
      {"number", test_type<bool, int64_t, double>},
      {"integer", test_type<int64_t>},
      {"float", test_type<double>},
      {"boolean", test_type<bool>},
      {"true", test_boolean_value<true>},
      {"false", test_boolean_value<false>},
      {"callable", test_type<Callable*>},
      {"equalto", test_compares<Operator::kEqual>},
      {"eq", test_compares<Operator::kEqual>},
      {"ne", test_compares<Operator::kUnequal>},
      {"lt", test_compares<Operator::kLess>},
      {"lessthan", test_compares<Operator::kLess>},
      {"le", test_compares<Operator::kLessOrEqual>},
      {"gt", test_compares<Operator::kGreater>},
      {"greaterthan", test_compares<Operator::kGreater>},
      {"ge", test_compares<Operator::kGreaterOrEqual>},
      {"in", test_compares<Operator::kIn>},
      {"sameas", test_same},
      {"odd", test_parity<1>},
      {"even", test_parity<0>},
      {"divisibleby", test_divisible},
      {"upper", test_case<true>},
      {"lower", test_case<false>},
  };
  return kTests;
}

}  // namespace

Test find_test(std::string_view name) {
  const auto found = tests().find(name);
  return found == tests().end() ? nullptr : found->second;
}

}  // namespace verbatim::jinja
