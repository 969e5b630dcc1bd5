#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <thread>

#include "base/utf8.h"
#include "structure/compiled_structure.h"
#include "structure/structure_cursor.h"
#include "support/structures.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

std::shared_ptr<const Tokenizer> listed() {
  return std::make_shared<test::ListedTokenizer>(test::listed_pieces());
}

std::vector<std::pair<std::string, Structure>> various_structures() {
  const auto schema = [](const char* text) {
    return std::pair(std::string(text), Structure::json_schema(text));
  };
  return {
      schema(R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":1,
              "maximum":130},"tags":{"type":"array","items":{"enum":["a","ab","the"]}}},"required":["name","age"]})"),
      schema(R"({"type":"string","maxLength":5})"),
      schema(R"({"type":"string","minLength":3})"),
      schema(
          R"({"type":"array","items":{"anyOf":[{"type":"string","minLength":1,"maxLength":2},{"const":"hello world"},
              {"type":"number"}]},"minItems":1})"),
      schema(R"({"type":"string","pattern":"the+ .*é"})"),
      schema(
          R"({"type":"object","properties":{"name":{"type":"null"}},"additionalProperties":{"type":"string"}})"),
      schema("{}"),
      {"free text", Structure::sequence({Structure::free_text({"<tool_call>", "\n\n"}),
                                         Structure::text("<tool_call>"), Structure::json_object()})},
      {"special", Structure::sequence({Structure::special("<call>"), Structure::regex("[a-z]{2,4}|\\d+"),
                                       Structure::special("<none>")})},
      {"free text of other strings", Structure::free_text({"日", "éa"})},
      {"any", Structure::free_text()},
      {"not quotes", Structure::regex("\"[^\"]*\"|.{3,7}x")},
  };
}

/// The tokens that may follow a text, found by trying each.
TokenBits tried(test::Reader& reader, const StructureVocabulary& vocabulary, const std::string& text) {
  TokenBits bits(vocabulary.words(), 0);
  for (int32_t token = 0; token < vocabulary.size(); ++token) {
    const std::string_view own = vocabulary.text(token);
    if (!own.empty() && reader.begins(text + std::string(own))) set_bit(bits, token);
  }
  return bits;
}

/// What can follow a text and nothing else, up to where it is complete or there is a choice; `closed` says
/// whether nothing but the end can come behind it.
std::string only_rest(test::Reader& reader, const std::string& text, bool& closed) {
  std::string rest;
  closed = false;
  while (rest.size() < 200) {
    int count = 0;
    char next = 0;
    for (int byte = 0; byte < 256; ++byte) {
      const std::string longer = text + rest + static_cast<char>(byte);
      if (!reader.begins(longer)) continue;
      ++count;
      next = static_cast<char>(byte);
    }
    const bool complete = reader.fits(text + rest);
    closed = count == 0;
    if (complete || count != 1) break;
    rest += next;
  }
  return rest;
}

/// The token that must follow a text, by the rule that forced text is written as the tokenizer writes it, its
/// last token left free unless it is the last of all; -1 where there is none.
int32_t expected_only(test::Reader& reader, const StructureVocabulary& vocabulary, const std::string& text) {
  bool closed = false;
  std::string rest = only_rest(reader, text, closed);
  // Whole characters alone can be written.
  size_t whole = rest.size();
  while (whole > 0 && find_invalid_utf8(rest.substr(0, whole)) != std::string::npos) --whole;
  if (whole + 3 < rest.size() || whole == 0) return -1;
  std::vector<int32_t> tokens;
  if (!vocabulary.encode(rest.substr(0, whole), tokens) || vocabulary.text(tokens[0]).empty()) return -1;
  return tokens.size() > 1 || (closed && whole == rest.size()) ? tokens[0] : -1;
}

/// Walks at random through a structure and compares the masks on the way with what trying says.
void compare_masks(const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& name,
                   const Structure& structure, int walks, int steps) {
  SCOPED_TRACE(name);
  const auto vocabulary = std::make_shared<const StructureVocabulary>(tokenizer, tokenizer->vocab_size() + 3);
  CompiledStructure compiled(*structure.node(), vocabulary);
  test::Reader reader(structure);
  std::mt19937 random(7);
  for (int walk = 0; walk < walks; ++walk) {
    std::vector<int32_t> tokens;
    std::string text;
    StructureHistory history;
    for (int step = 0; step < steps; ++step) {
      const auto mask = compiled.allowed(tokens, {}, history);
      ASSERT_EQ(mask->bits, tried(reader, *vocabulary, text)) << "after " << text;
      ASSERT_EQ(mask->complete, reader.fits(text)) << "after " << text;
      ASSERT_EQ(mask->only ? mask->first : -1, expected_only(reader, *vocabulary, text)) << "after " << text;
      std::vector<int32_t> choices;
      for (int32_t token = 0; token < vocabulary->size(); ++token) {
        if (test_bit(mask->bits, token)) choices.push_back(token);
      }
      if (choices.empty()) break;
      // Mostly as replies go on, and now and then with other tokens of a forced text.
      const bool follow = mask->only && random() % 4 != 0;
      tokens.push_back(follow ? mask->first : choices[random() % choices.size()]);
      text += vocabulary->text(tokens.back());
    }
  }
}

TEST(TokenMasks, AreThoseOfTryingEveryToken) {
  for (const auto& [name, structure] : various_structures()) {
    if (name != "special") compare_masks(listed(), name, structure, 12, 25);
  }
}

TEST(TokenMasks, AreThoseOfTryingEveryTokenOfASentencePieceVocabulary) {
  const auto tokenizer =
      load_tokenizer({TokenizerSource::Kind::kSentencePieceModel, test::default_model() / "tokenizer.model"});
  for (const auto& [name, structure] : various_structures()) {
    if (name != "special") compare_masks(tokenizer, name, structure, 1, 12);
  }
}

/// The tokens of a text among the listed pieces, all of which must be single bytes.
std::vector<int32_t> byte_tokens(const StructureVocabulary& vocabulary, std::string_view text) {
  std::vector<int32_t> tokens;
  for (const char c : text) {
    for (int32_t token = 0; token < vocabulary.size(); ++token) {
      if (vocabulary.text(token) == std::string_view(&c, 1)) {
        tokens.push_back(token);
        break;
      }
    }
  }
  return tokens;
}

struct Compiled {
  std::shared_ptr<const StructureVocabulary> vocabulary;
  std::shared_ptr<CompiledStructure> structure;

  explicit Compiled(const Structure& from)
      : vocabulary(std::make_shared<const StructureVocabulary>(listed(), listed()->vocab_size())),
        structure(std::make_shared<CompiledStructure>(*from.node(), vocabulary)) {}

  /// The logits that a cursor leaves of zeros after some tokens: those of allowed tokens.
  std::vector<int32_t> allowed(StructureCursor& cursor, const std::vector<int32_t>& tokens,
                               size_t logits = 0) const {
    std::vector<float> row(logits > 0 ? logits : static_cast<size_t>(vocabulary->size()), 0.0f);
    cursor.apply(tokens, row);
    std::vector<int32_t> found;
    for (size_t t = 0; t < row.size(); ++t) {
      if (row[t] == 0.0f) found.push_back(static_cast<int32_t>(t));
    }
    return found;
  }
};

constexpr int32_t kEos = 0;
constexpr int32_t kCall = 1;

TEST(TokenMasks, AllowTheEndExactlyWhereTheTextIsComplete) {
  const Compiled compiled(Structure::regex("ab?"));
  StructureCursor cursor(compiled.structure, {kEos});
  const auto a = byte_tokens(*compiled.vocabulary, "a");
  const auto ab = byte_tokens(*compiled.vocabulary, "ab");
  const int32_t b = ab[1];
  EXPECT_EQ(compiled.allowed(cursor, {}), a);
  EXPECT_EQ(compiled.allowed(cursor, a), (std::vector<int32_t>{kEos, b}));
  EXPECT_EQ(compiled.allowed(cursor, ab), std::vector<int32_t>{kEos});
  // Behind the end there is nothing but the end, and behind what was forbidden nothing at all.
  EXPECT_EQ(compiled.allowed(cursor, {a[0], kEos}), std::vector<int32_t>{kEos});
  EXPECT_TRUE(compiled.allowed(cursor, {b, b}).empty());
  EXPECT_TRUE(compiled.allowed(cursor, {kEos}).empty());
  // A stop token with a text ends the sequence too, and nothing else.
  StructureCursor stopping(compiled.structure, {kEos, b});
  EXPECT_EQ(compiled.allowed(stopping, {}), a);
  EXPECT_EQ(compiled.allowed(stopping, a), (std::vector<int32_t>{kEos, b}));
  EXPECT_EQ(compiled.allowed(stopping, ab), (std::vector<int32_t>{kEos, b}));
}

TEST(TokenMasks, TakeSpecialTokensOnlyWhereTheyAreAskedFor) {
  const Compiled compiled(Structure::sequence(
      {Structure::free_text({"x"}), Structure::special("<call>"), Structure::special("<none>")}));
  StructureCursor cursor(compiled.structure, {kEos});
  const auto at_start = compiled.allowed(cursor, {});
  EXPECT_TRUE(std::find(at_start.begin(), at_start.end(), kCall) != at_start.end());
  EXPECT_TRUE(std::find(at_start.begin(), at_start.end(), kEos) == at_start.end());
  // What the vocabulary lacks is text.
  std::vector<int32_t> tokens = {kCall};
  EXPECT_EQ(compiled.allowed(cursor, tokens), byte_tokens(*compiled.vocabulary, "<"));
  for (const int32_t token : byte_tokens(*compiled.vocabulary, "<none>")) tokens.push_back(token);
  EXPECT_EQ(compiled.allowed(cursor, tokens), std::vector<int32_t>{kEos});
}

TEST(TokenMasks, DependOnTheTokensAloneWhateverWasAskedBefore) {
  const Compiled compiled(Structure::json_schema(R"({"type":"array","items":{"type":"string"}})"));
  StructureCursor cursor(compiled.structure, {kEos});
  std::mt19937 random(3);
  std::vector<std::vector<int32_t>> texts = {{}};
  for (const char* text : {"[\"a\", \"bc\"]", "[]", "[\"\\u00", "[\"a\", ]", "x", "[\"日"}) {
    const auto tokens = byte_tokens(*compiled.vocabulary, text);
    for (size_t length = 1; length <= tokens.size(); ++length) {
      texts.emplace_back(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length));
    }
  }
  for (int i = 0; i < 300; ++i) {
    const auto& tokens = texts[random() % texts.size()];
    StructureCursor fresh(compiled.structure, {kEos});
    ASSERT_EQ(compiled.allowed(cursor, tokens), compiled.allowed(fresh, tokens));
  }
}

TEST(TokenMasks, ServeFewerLogitsThanTokens) {
  const Compiled compiled(Structure::json_schema(R"({"type":"string"})"));
  StructureCursor cursor(compiled.structure, {kEos, 270});
  const auto tokens = byte_tokens(*compiled.vocabulary, "\"");
  const auto all = compiled.allowed(cursor, tokens);
  for (const size_t logits : {1u, 63u, 64u, 65u, 100u, 129u}) {
    std::vector<int32_t> expected;
    for (const int32_t token : all) {
      if (static_cast<size_t>(token) < logits) expected.push_back(token);
    }
    EXPECT_EQ(compiled.allowed(cursor, tokens, logits), expected) << logits;
  }
}

TEST(TokenMasks, AreTheSameForManyThreads) {
  const Compiled compiled(various_structures()[0].second);
  const auto tokens =
      byte_tokens(*compiled.vocabulary, R"({"name": "abc", "age": 12, "tags": ["a", "the"]})");
  std::vector<std::vector<int32_t>> expected;
  {
    const Compiled other(various_structures()[0].second);
    StructureCursor cursor(other.structure, {kEos});
    for (size_t i = 0; i <= tokens.size(); ++i) {
      expected.push_back(
          other.allowed(cursor, {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(i)}));
    }
  }
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      StructureCursor cursor(compiled.structure, {kEos});
      for (size_t round = 0; round < 3; ++round) {
        for (size_t i = 0; i <= tokens.size(); ++i) {
          const auto found =
              compiled.allowed(cursor, {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(i)});
          wrong[t] += found == expected[i] ? 0 : 1;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

/// The text of forced tokens, with | before the first that is not certain; a token without text as its
/// spelling.
std::string forced_text(const Compiled& compiled, const std::string& before, size_t most = 100) {
  StructureCursor cursor(compiled.structure, {kEos});
  std::string text;
  const ForcedTokens forced = cursor.forced(byte_tokens(*compiled.vocabulary, before), most);
  for (size_t i = 0; i < forced.tokens.size(); ++i) {
    if (i == forced.certain) text += '|';
    const int32_t token = forced.tokens[i];
    text += token == kEos    ? "<eos>"
            : token == kCall ? "<call>"
                             : std::string(compiled.vocabulary->text(token));
  }
  return text;
}

/// The texts of the tokens that a structure allows after a text.
std::vector<std::string> allowed_texts(const Structure& structure, const std::string& before) {
  const Compiled compiled(structure);
  StructureCursor cursor(compiled.structure, {kEos});
  std::vector<std::string> texts;
  for (const int32_t token : compiled.allowed(cursor, byte_tokens(*compiled.vocabulary, before)))
    texts.emplace_back(compiled.vocabulary->text(token));
  std::sort(texts.begin(), texts.end());
  return texts;
}

using Texts = std::vector<std::string>;

TEST(ForcedTokens, AreThoseOfTheTokenizerAlone) {
  // "name" is one token, behind which nothing comes.
  EXPECT_EQ(allowed_texts(Structure::text("name"), ""), Texts{"name"});
  EXPECT_EQ(allowed_texts(Structure::text("name"), "n"), Texts{"a"});
  // With other text behind it the tokenizer might have another token than the last one of the forced text.
  EXPECT_EQ(allowed_texts(Structure::regex("name[sd]"), ""), (Texts{"n", "na", "name"}));
  EXPECT_EQ(allowed_texts(Structure::regex("name1?"), ""), (Texts{"n", "na", "name"}));
  EXPECT_EQ(allowed_texts(Structure::regex("true name[sd]"), ""), Texts{"true"});
  // A special token ends the text before it.
  EXPECT_EQ(allowed_texts(Structure::sequence({Structure::text("name"), Structure::special("<call>")}), ""),
            Texts{"name"});
}

TEST(ForcedTokens, GiveWayToOtherTokensOfTheirTextWhereTheyAreForbidden) {
  const Compiled compiled(Structure::text("name"));
  StructureHistory history;
  const int32_t first = compiled.structure->allowed({}, {}, history)->first;
  ASSERT_EQ(compiled.vocabulary->text(first), "name");
  const auto allowed = [&](StructureCursor cursor, float logit) {
    std::vector<float> row(static_cast<size_t>(compiled.vocabulary->size()), 0.0f);
    row[static_cast<size_t>(first)] = logit;
    cursor.apply({}, row);
    return std::count(row.begin(), row.end(), 0.0f);
  };
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(allowed(StructureCursor(compiled.structure, {kEos}), 0.0f), 1);
  EXPECT_EQ(allowed(StructureCursor(compiled.structure, {kEos}), kNever), 2);       // n, na
  EXPECT_EQ(allowed(StructureCursor(compiled.structure, {kEos, first}), 0.0f), 2);  // it would end the reply
  EXPECT_TRUE(StructureCursor(compiled.structure, {kEos, first}).forced({}, 8).tokens.empty());
}

TEST(ForcedTokens, AreTheOnlyTextThatCanFollow) {
  const Compiled object(Structure::json_schema(
      R"({"type":"object","properties":{"name":{"type":"string"},"kind":{"enum":["small","smart"]}},
          "required":["name","kind"],"additionalProperties":false})"));
  EXPECT_EQ(forced_text(object, ""), R"({"name|": ")");
  EXPECT_EQ(forced_text(object, R"({"na)"), R"(me|": ")");
  EXPECT_EQ(forced_text(object, R"({"name": "x)"), "");
  EXPECT_EQ(forced_text(object, R"({"name": "x")"), R"(, "kind": "sm|a)");
  EXPECT_EQ(forced_text(object, R"({"name": "x", "kind": "smal)"), R"(l"}<eos>)");
  EXPECT_EQ(forced_text(object, R"({"name": "x", "kind": "small"})"), "<eos>");
  EXPECT_EQ(forced_text(object, "y"), "");
  StructureCursor cursor(object.structure, {kEos});
  EXPECT_EQ(cursor.forced({}, 2).tokens.size(), 2u);
  EXPECT_EQ(cursor.forced({}, 2).certain, 2u);
  EXPECT_TRUE(cursor.forced({}, 0).tokens.empty());
}

TEST(ForcedTokens, CrossSpecialTokensAndKeepCharactersWhole) {
  const Compiled compiled(Structure::sequence({Structure::text("ab"), Structure::special("<call>"),
                                               Structure::regex("é日|éz"), Structure::text("!")}));
  EXPECT_EQ(forced_text(compiled, ""), "ab<call>|é");
  const Compiled characters(Structure::regex("日|旦"));  // the same first bytes
  EXPECT_EQ(forced_text(characters, ""), "");
  EXPECT_EQ(forced_text(characters, "\xE6\x97\xA5"), "<eos>");
}

TEST(StructureCache, FindsWhatWasMadeReadyBefore) {
  StructureCache cache(listed(), listed()->vocab_size());
  const char* const schema = R"({"type":"string"})";
  const auto first = cache.compiled(Structure::json_schema(schema));
  EXPECT_EQ(cache.compiled(Structure::json_schema(schema)), first);
  EXPECT_NE(cache.compiled(Structure::json_schema("{}")), first);
  for (int i = 0; i < 40; ++i) cache.compiled(Structure::text(std::to_string(i)));
  EXPECT_NE(cache.compiled(Structure::json_schema(schema)), first);
}

TEST(StructureCache, TellsStructuresApart) {
  const Structure a = Structure::text("a");
  const Structure b = Structure::text("b");
  const std::vector<Structure> different = {a,
                                            b,
                                            Structure::sequence({a, b}),
                                            Structure::choice({a, b}),
                                            Structure::text("ab"),
                                            Structure::special("a"),
                                            Structure::free_text({"a"}),
                                            Structure::free_text({"a", "b"}),
                                            Structure::repeat(a, 0),
                                            Structure::repeat(a, 1),
                                            Structure::repeat(a, 0, 5),
                                            Structure::repeat(a, 0, -1, ","),
                                            Structure::regex("a*"),
                                            Structure::json_object(),
                                            Structure::json_schema("{}"),
                                            Structure::sequence({Structure::sequence({a}), b})};
  std::set<std::string> keys;
  for (const Structure& each : different) keys.insert(structure_key(*each.node()));
  EXPECT_EQ(keys.size(), different.size());
}

TEST(TokenMasks, AreRightAtTheDeepestNesting) {
  const auto vocabulary = std::make_shared<const StructureVocabulary>(listed(), listed()->vocab_size());
  const Structure structure = Structure::json_object();
  CompiledStructure compiled(*structure.node(), vocabulary);
  test::Reader reader(structure);
  for (const char* inside : {"", "\"", "\"a", "1"}) {
    for (int depth = 248; depth < 259; ++depth) {
      const std::string text = "{\"a\": " + std::string(static_cast<size_t>(depth), '[') + inside;
      std::vector<int32_t> tokens;
      for (const char c : text) tokens.push_back(*listed()->find(std::string(1, c)));
      StructureHistory history;
      EXPECT_EQ(compiled.allowed(tokens, {}, history)->bits, tried(reader, *vocabulary, text))
          << inside << " at " << depth;
    }
  }
}

TEST(TokenMasks, OfLongTextsAreThoseOfShortOnesThatMeanTheSame) {
  const auto vocabulary = std::make_shared<const StructureVocabulary>(listed(), listed()->vocab_size());
  // Each character more is a state of its own, so that the first ones are forgotten on the way.
  const Structure structure = Structure::regex("x{0,100000}|x{80000}(yes|no)");
  CompiledStructure compiled(*structure.node(), vocabulary);
  const int32_t x = *listed()->find("x");
  std::vector<int32_t> tokens(80'000, x);
  StructureHistory history;
  const auto mask = compiled.allowed(tokens, {}, history);
  EXPECT_TRUE(mask->complete);
  EXPECT_TRUE(test_bit(mask->bits, x));
  EXPECT_TRUE(test_bit(mask->bits, *listed()->find("y")));
  EXPECT_FALSE(test_bit(mask->bits, *listed()->find("z")));
  // Back to a state that is remembered, and to one that is not.
  for (const size_t length : {size_t{79'990}, size_t{5}}) {
    tokens.resize(length);
    const auto earlier = compiled.allowed(tokens, {}, history);
    EXPECT_TRUE(test_bit(earlier->bits, x)) << length;
    EXPECT_FALSE(test_bit(earlier->bits, *listed()->find("y"))) << length;
  }
}

TEST(TokenMasks, ReachNoTokenBeyondTheVocabulary) {
  const auto vocabulary = std::make_shared<const StructureVocabulary>(listed(), listed()->vocab_size());
  const Structure structure = Structure::text("abc");
  const int32_t beyond = vocabulary->size() + 1;
  StructureCursor cursor(std::make_shared<CompiledStructure>(*structure.node(), vocabulary), {-1, beyond});
  std::vector<float> logits(static_cast<size_t>(vocabulary->size()) + 100, 1.0f);
  cursor.apply({}, logits);
  EXPECT_EQ(logits[static_cast<size_t>(beyond)], -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace verbatim
