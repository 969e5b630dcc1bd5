#include "verbatim/structure.h"

#include <gtest/gtest.h>

#include <regex>

#include "support/structures.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

TEST(Structure, PutsPartsTogether) {
  const Structure item = Structure::choice({Structure::text("a"), Structure::text("bc")});
  test::Reader list(
      Structure::sequence({Structure::text("<"), Structure::repeat(item, 1, 3, ", "), Structure::text(">")}));
  for (const char* good : {"<a>", "<a, bc>", "<bc, bc, bc>"}) EXPECT_TRUE(list.fits(good)) << good;
  for (const char* bad : {"<>", "<a,a>", "<a, a, a, a>", "<a, >", "<a", ""})
    EXPECT_FALSE(list.fits(bad)) << bad;
  EXPECT_TRUE(test::fits(Structure::repeat(item, 0), ""));
  EXPECT_TRUE(test::fits(Structure::repeat(item, 2, 2), "abc"));
  EXPECT_FALSE(test::fits(Structure::repeat(item, 2, 2), "a"));
  EXPECT_TRUE(test::fits(Structure::sequence({}), ""));
}

TEST(Structure, RepeatsWhatMayBeEmptyWithoutEnd) {
  const Structure maybe = Structure::repeat(Structure::text("a"), 0, 1);
  test::Reader reader(Structure::repeat(Structure::sequence({maybe, maybe}), 3, -1));
  EXPECT_TRUE(reader.fits(""));
  EXPECT_TRUE(reader.fits("aaaaaaaaaaaa"));
  EXPECT_FALSE(reader.fits("aab"));
}

TEST(Structure, FreeTextHasNoneOfItsStrings) {
  test::Reader reader(
      Structure::sequence({Structure::free_text({"<end>", "<en d>", "日本"}), Structure::text("<end>")}));
  for (const char* good : {"<end>", "ab<end>", "<<end>", "<e <en <end>", "日<end>", "日\n<end>"}) {
    EXPECT_TRUE(reader.fits(good)) << good;
  }
  for (const char* bad : {"", "x", "<end><end>", "<en d><end>", "a日本<end>", "\xE6\x97<end>", "\xFF<end>"}) {
    EXPECT_FALSE(reader.fits(bad)) << bad;
  }
  EXPECT_TRUE(test::fits(Structure::free_text(), "any\ttext 😀"));
  EXPECT_FALSE(test::fits(Structure::free_text({"aab"}), "aaab"));
  EXPECT_TRUE(test::fits(Structure::free_text({"aab"}), "aaa"));
}

TEST(Structure, FreeTextAgreesWithASearchForItsStrings) {
  const std::vector<std::string> without = {"ab", "bba", "aaa"};
  test::Reader reader(Structure::free_text(without));
  for (uint32_t i = 0; i < 3 * 729; ++i) {
    std::string text;
    for (uint32_t rest = i; rest > 0; rest /= 3) text += "abc"[rest % 3];
    bool wanted = true;
    for (const std::string& each : without) wanted = wanted && text.find(each) == std::string::npos;
    ASSERT_EQ(reader.fits(text), wanted) << text;
  }
}

TEST(Structure, RefusesWhatIsNoText) {
  EXPECT_THROW(Structure::text("\xFF"), Error);
  EXPECT_THROW(Structure::free_text({""}), Error);
  EXPECT_THROW(Structure::choice({}), Error);
  EXPECT_THROW(Structure::repeat(Structure::text("a"), 2, 1), Error);
  Structure deep = Structure::text("a");
  EXPECT_THROW(for (int i = 0; i < 100000; ++i) deep = Structure::sequence({deep, deep}), Error);
}

TEST(Structure, RefusesWhatIsTooAmbiguous) {
  // Every way to share the letters among the repetitions is a way to read them.
  const Structure part = Structure::repeat(Structure::text("a"), 1, 2000);
  test::Reader reader(Structure::repeat(Structure::repeat(part, 1, 2000), 1, 2000));
  EXPECT_THROW(reader.begins(std::string(4000, 'a')), Error);
}

TEST(Structure, AgreesWithRegularExpressionsOfTheLibrary) {
  for (const char* pattern :
       {"a*b+c?", "(ab|a)*", "[a-b]{2,3}c", "a(b|c){0,2}", "[^a]b*", "(a|b)(c|a)?b{2}", "a{2,}|b", "(a*)*b",
        "(a?b?){2,3}", "\\x61[\\u0062c]", "(?:ab)+?c*", "^(a|bc)$"}) {
    test::Reader reader(Structure::regex(pattern));
    const std::regex expected(pattern);
    for (uint32_t i = 0; i < 3 * 729; ++i) {
      std::string text;
      for (uint32_t rest = i; rest > 0; rest = (rest - 1) / 3) text += "abc"[(rest - 1) % 3];
      ASSERT_EQ(reader.fits(text), std::regex_match(text, expected)) << text << " and " << pattern;
    }
  }
}

TEST(Structure, KnowsCharacterClassesOfUnicode) {
  test::Reader reader(Structure::regex("[à-ü]\\w\\d\\s.[^\\d]\\u{1F600}"));
  EXPECT_TRUE(reader.fits("éx1\u00A0日x😀"));
  EXPECT_FALSE(reader.fits("ex1 日x😀"));
  EXPECT_FALSE(reader.fits("éx1 日5😀"));
  EXPECT_FALSE(reader.fits("éx1 \nx😀"));
}

TEST(Structure, RefusesExpressionsThatAreNotRegularOrNotValid) {
  for (const char* pattern : {"(",      ")",       "[a",  "a**",    "*",    "a{2,1}",      "(?=a)",
                              "(?<=a)", "\\b",     "\\1", "a^b",    "(^a)", "\\u12",       "\\u{110000}",
                              "[b-a]",  "[\\d-z]", "a{1", "\\p{L}", "\xFF", "a{999999999}"}) {
    EXPECT_THROW(Structure::regex(pattern), Error) << pattern;
  }
  EXPECT_THROW(Structure::regex(std::string(1000, '(') + "a"), Error);
}

TEST(Structure, RepeatsLongSequencesThatMayBeEmpty) {
  std::string pattern;
  for (int i = 0; i < 3000; ++i) pattern += "a?";
  EXPECT_NO_THROW(Structure::repeat(Structure::regex(pattern), 0));
  test::Reader reader(Structure::repeat(Structure::regex("a?b?c?d?e?"), 2));
  for (const char* good : {"", "a", "edcba", "acebd"}) EXPECT_TRUE(reader.fits(good)) << good;
  EXPECT_FALSE(reader.begins("f"));
}

TEST(Automaton, TheWorkOfAMaskHasALimitThatNothingRememberedChanges) {
  test::Reader reader(Structure::regex("[^]*a.{3000}"));
  Automaton& automaton = reader.automaton();
  const auto steps_until_refused = [&] {
    int steps = 0;
    Automaton::State state = automaton.start();
    automaton.begin_mask();
    EXPECT_THROW(for (; steps < 100'000; ++steps) state = automaton.after_in_mask(state, 'a'), Error);
    return steps;
  };
  const int steps = steps_until_refused();
  EXPECT_GT(steps, 100);
  EXPECT_LT(steps, 100'000);
  EXPECT_EQ(steps_until_refused(), steps);
  automaton.forget();
  EXPECT_EQ(steps_until_refused(), steps);
}

TEST(Automaton, StatesThatAreKeptMeanTheSameAsBefore) {
  test::Reader reader(Structure::json_schema(R"({"type":"array","items":{"anyOf":[{"$ref":"#"},
      {"type":"string","maxLength":9}]}})"));
  Automaton& automaton = reader.automaton();
  const std::string text = R"([["a", [], "bcd)";
  std::vector<Automaton::State> states = {reader.after(text), Automaton::kDead, Automaton::kEnded,
                                          reader.after("[["), reader.after(text)};
  automaton.forget(states);
  EXPECT_EQ(states[0], reader.after(text));
  EXPECT_EQ(states[4], states[0]);
  EXPECT_EQ(states[1], Automaton::kDead);
  EXPECT_EQ(states[2], Automaton::kEnded);
  EXPECT_EQ(states[3], reader.after("[["));
}

}  // namespace
}  // namespace verbatim
