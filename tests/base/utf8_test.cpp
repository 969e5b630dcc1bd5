#include "base/utf8.h"

#include <gtest/gtest.h>

#include "text/tokenizer.h"
#include "text/tokenizer_support.h"
#include "verbatim/text.h"

namespace verbatim {
namespace {

constexpr size_t kValid = std::string_view::npos;

TEST(Utf8, AcceptsEveryCharacterAndNoSurrogate) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    test::append_utf8(c, text);
    const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    ASSERT_EQ(find_invalid_utf8(text), surrogate ? 0 : kValid) << c;
    if (!surrogate) {
      ASSERT_EQ(utf8_character(text, 0), c);
      ASSERT_EQ(utf8_length(text[0]), text.size());
    }
  }
}

TEST(Utf8, RejectsOverlongFormsAndValuesAboveTheLast) {
  for (const char* text : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                           "\xF5\x80\x80\x80", "\xFF", "\x80", "\xBF"}) {
    EXPECT_EQ(find_invalid_utf8(text), 0u);
  }
}

TEST(Utf8, TellsTheOffsetOfTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8("0123456789\xFF..."), 10u);
  EXPECT_EQ(find_invalid_utf8("h\xC3\xA9llo \xC3("), 7u);
  EXPECT_EQ(find_invalid_utf8("cut short \xF0\x9F\x98"), 10u);
  EXPECT_EQ(find_invalid_utf8(""), kValid);
}

TEST(Utf8, RequireUtf8NamesWhatAndWhere) {
  EXPECT_NO_THROW(require_utf8("fine ✓", "the prompt"));
  const std::string message = test::bad_input_message([] { require_utf8("ab\xFF", "the prompt"); });
  EXPECT_EQ(message, "the prompt is not valid UTF-8 at byte 2 (0xff): convert it to UTF-8 first");
}

TEST(Utf8, IncompleteSuffixIsWhatMoreBytesCouldComplete) {
  EXPECT_EQ(incomplete_utf8_suffix(""), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("abc"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xC3"), 1u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xF0\x9F\x98"), 3u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xF0\x9F\x98\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xE0\x80"), 0u) << "no character continues like that";
  EXPECT_EQ(incomplete_utf8_suffix("a\x80\x80"), 0u);
  EXPECT_EQ(incomplete_utf8_suffix("a\xFF"), 0u);
}

}  // namespace
}  // namespace verbatim
