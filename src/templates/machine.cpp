#include "templates/machine.h"

namespace verbatim::jinja {

namespace {

constexpr size_t kSteps = 2'000'000;
constexpr size_t kBytes = size_t{1} << 24;
constexpr size_t kLongestText = size_t{1} << 20;

}  // namespace

Machine::Machine(size_t input_bytes, std::time_t now)
    : steps_left_(kSteps + 16 * input_bytes),
      bytes_left_(kBytes + 64 * input_bytes),
      longest_(kLongestText + 4 * input_bytes),
      now_(now) {}

Value Machine::text(TracedText text) {
  check_length(text.size());
  take(text.size() + text.runs().size() * sizeof(TracedText::Run) + sizeof(TracedText));
  return make_text(std::move(text));
}

List* Machine::list(bool tuple) {
  take(sizeof(List));
  List& list = lists_.emplace_back();
  list.tuple = tuple;
  return &list;
}

List* Machine::list(std::vector<Value> items, bool tuple) {
  take(items.size() * sizeof(Value));
  List* const result = list(tuple);
  result->items = std::move(items);
  return result;
}

void Machine::append(List& list, Value value) {
  step();
  take(sizeof(Value));
  list.items.push_back(std::move(value));
}

Dict* Machine::dict() {
  take(sizeof(Dict));
  return &dicts_.emplace_back();
}

void Machine::set(Dict& dict, const Value& key, Value value) {
  step();
  take(128);  // with its place in the index
  if (is<List*>(key) || is<Dict*>(key)) fail("{} cannot be the key of a dictionary", type_name(key));
  dict.set(key, std::move(value));
}

Callable* Machine::callable(Callable callable) {
  take(sizeof(Callable));
  return &callables_.emplace_back(std::move(callable));
}

Loop* Machine::loop() {
  take(sizeof(Loop));
  return &loops_.emplace_back();
}

Scope* Machine::scope(Scope* parent) {
  take(sizeof(Scope));
  Scope& scope = scopes_.emplace_back();
  scope.parent = parent;
  return &scope;
}

const Value* Arguments::find(size_t place, std::string_view name) const {
  if (place < positional.size()) return &positional[place];
  for (const auto& [own, value] : named) {
    if (own == name) return &value;
  }
  return nullptr;
}

void check_count(const Machine& machine, std::string_view callee, const Arguments& arguments, size_t least,
                 size_t most) {
  const size_t count = arguments.positional.size() + arguments.named.size();
  if (count >= least && count <= most) return;
  machine.fail("'{}' was given {} arguments, and takes {} to {}", callee, count, least, most);
}

int64_t integer_argument(const Machine& machine, const Value* argument, int64_t otherwise) {
  if (argument == nullptr || is<None>(*argument)) return otherwise;
  if (const auto* boolean = std::get_if<bool>(argument)) return *boolean ? 1 : 0;
  if (const auto* integer = std::get_if<int64_t>(argument)) return *integer;
  machine.fail("an integer was expected where {} is", type_name(*argument));
}

const TracedText& text_argument(const Machine& machine, const Value* argument, std::string_view callee) {
  const TracedText* text = argument == nullptr ? nullptr : text_of(*argument);
  if (text == nullptr) machine.fail("'{}' wants a string", callee);
  return *text;
}

}  // namespace verbatim::jinja
