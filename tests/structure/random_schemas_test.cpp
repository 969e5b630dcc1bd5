#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "structure/json_nodes.h"
#include "support/structures.h"

// Random schemas and random values, judged by a validator of a few lines: the automaton takes exactly the
// values that are valid.

namespace verbatim {
namespace {

using Schema = OrderedJson;

class RandomJson {
 public:
  explicit RandomJson(uint32_t seed) : random_(seed) {}

  int below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }
  bool chance(int percent) { return below(100) < percent; }

  Schema schema(int depth) {
    switch (below(depth > 0 ? 8 : 5)) {
      case 0:
        return {{"type", "null"}};
      case 1:
        return {{"type", "boolean"}};
      case 2: {
        Schema made = {{"type", "integer"}};
        const int least = below(30) - 15;
        if (chance(60)) made["minimum"] = least;
        if (chance(60)) made["maximum"] = least + below(20);
        return made;
      }
      case 3: {
        Schema made = {{"type", "string"}};
        const int least = below(3);
        if (chance(60)) made["minLength"] = least;
        if (chance(60)) made["maxLength"] = least + below(3);
        return made;
      }
      case 4: {
        Schema made = {{"enum", Schema::array()}};
        for (int i = 0; i <= below(3); ++i) made["enum"].push_back(value(1));
        return made;
      }
      case 5: {
        Schema made = {{"type", "array"}, {"items", schema(depth - 1)}};
        const int least = below(2);
        if (chance(60)) made["minItems"] = least;
        if (chance(60)) made["maxItems"] = least + below(3);
        return made;
      }
      case 6: {
        Schema made = {{"anyOf", Schema::array()}};
        for (int i = 0; i <= 1 + below(2); ++i) made["anyOf"].push_back(schema(depth - 1));
        return made;
      }
      default: {
        Schema made = {{"type", "object"}, {"properties", Schema::object()}, {"required", Schema::array()}};
        for (const char* name : {"a", "ab", "é"}) {
          if (!chance(60)) continue;
          made["properties"][name] = schema(depth - 1);
          if (chance(50)) made["required"].push_back(name);
        }
        if (chance(30)) {
          made["additionalProperties"] = schema(depth - 1);
        } else {
          made["additionalProperties"] = false;
        }
        return made;
      }
    }
  }

  Schema value(int depth) {
    switch (below(depth > 0 ? 6 : 4)) {
      case 0:
        return nullptr;
      case 1:
        return chance(50);
      case 2:
        return below(40) - 20;
      case 3:
        return text();
      case 4: {
        Schema made = Schema::array();
        for (int i = below(4); i > 0; --i) made.push_back(value(depth - 1));
        return made;
      }
      default: {
        Schema made = Schema::object();
        for (const char* name : {"a", "ab", "é", "b"}) {
          if (chance(40)) made[name] = value(depth - 1);
        }
        return made;
      }
    }
  }

  /// A value that probably fits a schema.
  Schema fitting(const Schema& schema, int depth) {
    if (chance(10) || depth == 0) return value(1);
    if (schema.contains("enum"))
      return schema["enum"][static_cast<size_t>(below(static_cast<int>(schema["enum"].size())))];
    if (schema.contains("anyOf")) {
      return fitting(schema["anyOf"][static_cast<size_t>(below(static_cast<int>(schema["anyOf"].size())))],
                     depth - 1);
    }
    const auto type = schema["type"].get<std::string>();
    if (type == "null") return nullptr;
    if (type == "boolean") return chance(50);
    if (type == "integer") return schema.value("minimum", -15) + below(20);
    if (type == "string") return text();
    if (type == "array") {
      Schema made = Schema::array();
      for (int i = below(4); i > 0; --i) made.push_back(fitting(schema["items"], depth - 1));
      return made;
    }
    Schema made = Schema::object();
    for (const auto& [name, part] : schema["properties"].items()) {
      if (chance(75)) made[name] = fitting(part, depth - 1);
    }
    if (schema["additionalProperties"].is_object() && chance(50)) {
      made[chance(50) ? "x" : "abc"] = fitting(schema["additionalProperties"], depth - 1);
    }
    return made;
  }

 private:
  Schema text() {
    constexpr const char* kTexts[] = {"", "a", "é", "ab", "日本", "\"", "a\\b", "\n", "abcd", "😀"};
    return kTexts[below(10)];
  }

  std::mt19937 random_;
};

int64_t characters(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

/// Whether the properties of an object come in the order in which the schema names them, the others last.
bool in_order(const Schema& schema, const Schema& value) {
  int64_t last = -1;
  for (const auto& [name, unused] : value.items()) {
    const auto& properties = schema["properties"];
    const auto found = properties.find(name);
    const int64_t at = std::distance(properties.begin(), found);
    if (at < last || (found != properties.end() && at == last)) return false;
    last = at;
  }
  return true;
}

/// A limit where a schema has none: more than a value here can be.
constexpr int64_t kMany = 1'000'000'000'000'000;

bool valid(const Schema& schema, const Schema& value) {
  if (schema.contains("enum")) {
    // By text, as objects of another order are other texts.
    return std::any_of(schema["enum"].begin(), schema["enum"].end(),
                       [&](const Schema& each) { return dumped(each) == dumped(value); });
  }
  if (schema.contains("anyOf")) {
    return std::any_of(schema["anyOf"].begin(), schema["anyOf"].end(),
                       [&](const Schema& each) { return valid(each, value); });
  }
  const auto type = schema["type"].get<std::string>();
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") {
    if (!value.is_number_integer()) return false;
    const auto number = value.get<int64_t>();
    return number >= schema.value("minimum", -kMany) && number <= schema.value("maximum", kMany);
  }
  if (type == "string") {
    if (!value.is_string()) return false;
    const int64_t length = characters(value.get<std::string>());
    return length >= schema.value("minLength", int64_t{0}) && length <= schema.value("maxLength", kMany);
  }
  if (type == "array") {
    if (!value.is_array()) return false;
    const auto size = static_cast<int64_t>(value.size());
    return size >= schema.value("minItems", int64_t{0}) && size <= schema.value("maxItems", kMany) &&
           std::all_of(value.begin(), value.end(),
                       [&](const Schema& each) { return valid(schema["items"], each); });
  }
  if (!value.is_object() || !in_order(schema, value)) return false;
  for (const Schema& name : schema["required"]) {
    if (!value.contains(name.get<std::string>())) return false;
  }
  for (const auto& [name, part] : value.items()) {
    const auto found = schema["properties"].find(name);
    const Schema& own = found != schema["properties"].end() ? *found : schema["additionalProperties"];
    if (own.is_boolean() || !valid(own, part)) return false;
  }
  return true;
}

TEST(RandomSchemas, TakeExactlyTheValidValues) {
  int64_t fitting = 0;
  int64_t others = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    RandomJson random(seed);
    const Schema schema = random.schema(3);
    test::Reader reader(Structure::json_schema(schema.dump()));
    for (int i = 0; i < 40; ++i) {
      const Schema value = i % 4 == 0 ? random.value(3) : random.fitting(schema, 6);
      const bool wanted = valid(schema, value);
      ASSERT_EQ(reader.fits(dumped(value)), wanted) << schema << "\n" << value;
      ++(wanted ? fitting : others);
    }
  }
  EXPECT_GT(fitting, 4000);
  EXPECT_GT(others, 4000);
}

/// A text that the automaton chooses at random, byte by byte, within a length.
std::string random_text(test::Reader& reader, RandomJson& random) {
  Automaton& automaton = reader.automaton();
  std::string text;
  Automaton::State state = automaton.start();
  while (true) {
    const ByteSet bytes = automaton.bytes(state);
    if (automaton.complete(state) && (bytes.none() || random.chance(30))) return text;
    if (text.size() > 4000) return {};
    std::vector<uint8_t> choices;
    for (size_t byte = 0; byte < 256; ++byte) {
      // Closing and separating bytes come more often, so that texts end.
      if (!bytes.test(byte)) continue;
      const bool ends = byte == '"' || byte == ']' || byte == '}';
      choices.insert(choices.end(), ends ? 60 : 1, static_cast<uint8_t>(byte));
    }
    const uint8_t byte = choices[static_cast<size_t>(random.below(static_cast<int>(choices.size())))];
    state = automaton.after(state, byte);
    EXPECT_NE(state, Automaton::kDead) << "a byte that was allowed led nowhere after " << text;
    text += static_cast<char>(byte);
  }
}

TEST(RandomSchemas, LeadToTextsThatParseAndAreValid) {
  int64_t ended = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    RandomJson random(seed);
    const Schema schema = random.schema(3);
    test::Reader reader(Structure::json_schema(schema.dump()));
    for (int i = 0; i < 10; ++i) {
      const std::string text = random_text(reader, random);
      if (text.empty()) continue;
      ++ended;
      Schema value;
      ASSERT_NO_THROW(value = Schema::parse(text)) << text;
      // A key may come twice among those that the schema does not name; then the value is not in order.
      ASSERT_TRUE(valid(schema, value) || schema.dump().find("additionalProperties\":{") != std::string::npos)
          << schema << "\n"
          << text;
    }
  }
  EXPECT_GT(ended, 2000);
}

}  // namespace
}  // namespace verbatim
