#include "text/bpe_merge.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tokenizer_support.h"

namespace verbatim {
namespace {

/// Looks at every pair before each merge.
std::vector<Token> merge_slowly(const MergeTable& table, std::vector<Token> tokens) {
  while (true) {
    const Merge* best = nullptr;
    size_t at = 0;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const Merge* merge = table.find(tokens[i], tokens[i + 1]);
      if (merge != nullptr && (best == nullptr || merge->rank < best->rank)) {
        best = merge;
        at = i;
      }
    }
    if (best == nullptr) return tokens;
    tokens[at] = best->result;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(PairMerger, EqualsTheSlowWayOnRandomTables) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    MergeTable table;
    const Token letters = 2 + static_cast<Token>(random() % 4);
    const int pairs = 5 + static_cast<int>(random() % 60);
    for (int i = 0; i < pairs; ++i) {
      const auto bound = static_cast<uint32_t>(letters + i);
      const auto left = static_cast<Token>(random() % bound);
      const auto right = static_cast<Token>(random() % bound);
      table.add(left, right, {static_cast<int32_t>(random() % 30), letters + i});
    }
    PairMerger merger(table);
    for (size_t length : {0, 1, 2, 5, 15, 16, 17, 40, 300}) {
      std::vector<Token> word(length);
      for (Token& token : word) token = static_cast<Token>(random() % static_cast<uint32_t>(letters));
      std::vector<Token> merged = {7, 7};  // what lies before the word stays
      merged.insert(merged.end(), word.begin(), word.end());
      merger.merge(merged, 2);
      std::vector<Token> expected = merge_slowly(table, word);
      expected.insert(expected.begin(), {7, 7});
      ASSERT_EQ(merged, expected);
    }
  }
}

TEST(PairMerger, RefusesWordsOfMoreTokensThanItCanNumber) {
  MergeTable table;
  table.add(0, 0, {0, 1});
  for (const size_t most : {size_t{3}, size_t{30}}) {
    PairMerger merger(table, most);
    std::vector<Token> tokens(5 + most, 0);
    merger.merge(tokens, 5);
    EXPECT_EQ(tokens.size(), 5 + (most + 1) / 2);
    tokens.assign(5 + most + 1, 0);
    const auto message = test::bad_input_message([&] { merger.merge(tokens, 5); });
    EXPECT_NE(message.find("at most " + std::to_string(most) + " fit"), std::string::npos) << message;
  }
}

TEST(MergeTable, FindsWhatWasAddedLastAndNothingElse) {
  MergeTable table;
  EXPECT_EQ(table.find(0, 0), nullptr);
  std::map<std::pair<Token, Token>, Token> expected;
  std::mt19937 random(4);
  for (int i = 0; i < 20'000; ++i) {
    const auto left = static_cast<Token>(random() % 200);
    const auto right = static_cast<Token>(random() % 200);
    table.add(left, right, {i, i});
    expected[{left, right}] = i;
  }
  for (Token left = 0; left < 210; ++left) {
    for (Token right = 0; right < 210; ++right) {
      const auto found = expected.find({left, right});
      const Merge* merge = table.find(left, right);
      ASSERT_EQ(merge != nullptr, found != expected.end());
      if (merge != nullptr) {
        ASSERT_EQ(merge->result, found->second);
      }
    }
  }
}

}  // namespace
}  // namespace verbatim
