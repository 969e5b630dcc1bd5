#include "verbatim/ngrams.h"

#include <gtest/gtest.h>

#include "checkpoint/bad_input.h"
#include "drafting/ngram_table.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::expect_bad_input;

TEST(NgramCounter, CountsTextsIntoATableThatDraftersRead) {
  const test::TemporaryFolder folder;
  NgramCounter counter(test::draft_model(), {.shortest = 2, .longest = 3, .contexts = 1024});
  EXPECT_EQ(counter.contexts(), 0);
  counter.add("Once upon a time there was a girl.", "a text");
  const int64_t tokens = counter.tokens();
  EXPECT_GT(tokens, 5);
  counter.add("Once upon a time there was a girl.", "the same");
  EXPECT_EQ(counter.tokens(), 2 * tokens);
  counter.save(folder.path() / "table");
  const NgramTable table = NgramTable::load(folder.path() / "table");
  EXPECT_EQ(table.size(), counter.contexts());
  EXPECT_EQ(table.shape().longest, 3);
  expect_bad_input([&] { counter.save(folder.path() / "table"); }, {"table"});
}

TEST(NgramCounter, RefusesWhatItCannotCount) {
  EXPECT_THROW(NgramCounter(test::draft_model(), {.longest = kLongestNgram + 1}), Error);
  EXPECT_THROW(NgramCounter(test::draft_model(), {.contexts = 1000}), Error);
  expect_bad_input([] { NgramCounter("absent"); }, {"absent"});
  NgramCounter counter(test::draft_model());
  expect_bad_input([&] { counter.add("a\xff", "notes.txt"); }, {"notes.txt", "UTF-8"});
}

}  // namespace
}  // namespace verbatim
