#include "drafting/ngram_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <random>

#include "base/crc64.h"
#include "checkpoint/bad_input.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace {

using test::expect_bad_input;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

using Counts = std::vector<std::pair<int32_t, int>>;

/// What the table counted after the last `order` tokens of a context, the most recent first.
Counts after(const NgramTable& table, const std::vector<int32_t>& context, int32_t order) {
  NgramTable::Keys keys;
  const int32_t index = order - table.shape().shortest;
  if (index >= table.hash(context, keys)) return {};
  const auto* followers = table.find(index, keys[static_cast<size_t>(index)]);
  Counts counts;
  for (size_t i = 0; followers != nullptr && i < 4 && followers->counts[i] > 0; ++i) {
    counts.emplace_back(followers->tokens[i], followers->counts[i]);
  }
  return counts;
}

NgramTable table_of(int32_t shortest, int32_t longest, const std::vector<int32_t>& tokens) {
  NgramTable table({shortest, longest, 1024, 1000});
  table.learn(tokens);
  return table;
}

std::vector<int32_t> random_tokens(size_t count, int32_t vocabulary, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % static_cast<uint32_t>(vocabulary));
  return tokens;
}

TEST(NgramTable, CountsWhatFollowedTheMostRecentFirst) {
  const NgramTable table = table_of(1, 2, {1, 2, 3, 1, 2, 4, 1, 2, 3});
  EXPECT_THAT(after(table, {1}, 1), ElementsAre(Pair(2, 3)));
  EXPECT_THAT(after(table, {2}, 1), ElementsAre(Pair(3, 2), Pair(4, 1)));
  EXPECT_THAT(after(table, {9, 1, 2}, 2), ElementsAre(Pair(3, 2), Pair(4, 1)));
  EXPECT_THAT(after(table, {9, 2}, 2), IsEmpty());
  EXPECT_THAT(after(table, {2}, 2), IsEmpty());  // too short
}

TEST(NgramTable, KeepsFourFollowersAndCountsTheOthers) {
  NgramTable table({1, 1, 4, 1000});
  NgramTable::Keys keys;
  const std::vector<int32_t> context = {7};
  const int32_t orders = table.hash(context, keys);
  for (const int32_t token : {1, 1, 2, 2, 3, 4, 5}) table.learn(keys, orders, token);
  EXPECT_THAT(after(table, context, 1), ElementsAre(Pair(5, 1), Pair(4, 1), Pair(2, 2), Pair(1, 2)));
  EXPECT_EQ(table.find(0, keys[0])->others, 1);
  EXPECT_EQ(table.find(0, keys[0])->total(), 7);
}

TEST(NgramTable, HalvesCountsThatGrowTooLarge) {
  NgramTable table({1, 1, 4, 1000});
  NgramTable::Keys keys;
  const int32_t orders = table.hash(std::vector<int32_t>{7}, keys);
  table.learn(keys, orders, 2);
  for (int i = 0; i < 10; ++i) table.learn(keys, orders, 3);
  for (int i = 0; i < 300; ++i) table.learn(keys, orders, 1);
  EXPECT_THAT(after(table, {7}, 1), ElementsAre(Pair(1, 300 - 255 + 127), Pair(3, 5)));
  for (int i = 0; i < 5000; ++i) table.learn(keys, orders, i % 997);
  EXPECT_THAT(after(table, {7}, 1), ::testing::SizeIs(4));
}

TEST(NgramTable, AgreesWithCountingExactly) {
  const std::vector<int32_t> tokens = random_tokens(300, 3, 5);
  const NgramTable table = table_of(1, 3, tokens);
  for (size_t n = 1; n <= 3; ++n) {
    std::map<std::vector<int32_t>, std::map<int32_t, int>> counts;
    for (size_t i = n; i < tokens.size(); ++i) {
      const std::vector<int32_t> context(tokens.begin() + static_cast<ptrdiff_t>(i - n),
                                         tokens.begin() + static_cast<ptrdiff_t>(i));
      ++counts[context][tokens[i]];
    }
    for (const auto& [context, followers] : counts) {
      const Counts found = after(table, context, static_cast<int32_t>(n));
      EXPECT_EQ((std::map<int32_t, int>(found.begin(), found.end())), followers);
    }
  }
}

TEST(NgramTable, GrowsWithoutForgetting) {
  NgramTable table({1, 1, 1 << 24, 1 << 20});
  const int64_t at_first = table.capacity();
  EXPECT_LE(at_first, 64);
  std::map<int32_t, int32_t> last;
  std::mt19937 random(8);
  const auto learn = [&](int32_t context, int32_t token) {
    NgramTable::Keys keys;
    table.learn(keys, table.hash(std::span(&context, 1), keys), token);
  };
  int64_t before = at_first;
  for (int32_t i = 0; i < 30000; ++i) {
    const auto context = static_cast<int32_t>(random() % (1 << 20));
    learn(context, i);
    last[context] = i;
    if (i % 1000 != 0) continue;
    EXPECT_GE(table.capacity(), before);
    before = table.capacity();
  }
  EXPECT_EQ(table.size(), static_cast<int64_t>(last.size()));
  EXPECT_GT(table.capacity(), at_first);
  EXPECT_LE(table.capacity(), 1 << 20);
  for (const auto& [context, token] : last) {
    const Counts found = after(table, {context}, 1);
    ASSERT_FALSE(found.empty()) << context;
    ASSERT_EQ(found.front().first, token) << context;
  }
}

TEST(NgramTable, StaysWithinItsMemory) {
  NgramTable table({1, 2, 64, 1 << 20});
  table.learn(random_tokens(20000, 1 << 20, 6));
  EXPECT_EQ(table.size(), 2 * 64);
}

TEST(NgramTable, ForgetsTheRareBeforeTheFrequentAndTheFrequentWhenItIsOld) {
  NgramTable table({1, 1, 64, 1 << 20});
  const auto learn = [&](int32_t context, int32_t token) {
    NgramTable::Keys keys;
    table.learn(keys, table.hash(std::span(&context, 1), keys), token);
  };
  for (int i = 0; i < 20; ++i) learn(1, 2);
  for (int32_t i = 0; i < 500; ++i) learn(1000 + i, 3);
  EXPECT_THAT(after(table, {1}, 1), ElementsAre(Pair(2, 20)));
  for (int32_t i = 0; i < 3000; ++i) learn(10000 + i, 3);
  EXPECT_THAT(after(table, {1}, 1), IsEmpty());
}

TEST(NgramTable, RefusesShapesThatDoNotExist) {
  const NgramTable::Shape wrong[] = {{0, 2, 64, 10},  {3, 2, 64, 10}, {1, 33, 64, 10},
                                     {1, 2, 100, 10}, {1, 2, 2, 10},  {1, 2, int64_t{1} << 25, 10},
                                     {1, 2, 64, -1}};
  for (const NgramTable::Shape& shape : wrong) {
    try {
      NgramTable table(shape);
      ADD_FAILURE() << shape.shortest << " to " << shape.longest << ", " << shape.contexts;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    }
  }
}

TEST(NgramTable, ComesBackFromAFile) {
  const TemporaryFolder folder;
  const std::vector<int32_t> tokens = random_tokens(3000, 12, 7);
  NgramTable table({2, 4, 256, 12});
  table.learn(tokens);
  table.save(folder.path() / "table");
  NgramTable loaded = NgramTable::load(folder.path() / "table");
  EXPECT_EQ(loaded.shape(), table.shape());
  EXPECT_EQ(loaded.size(), table.size());
  // They go on alike, too.
  for (NgramTable* const each : {&table, &loaded}) each->learn(random_tokens(500, 12, 8));
  for (size_t i = 4; i < tokens.size(); ++i) {
    const std::vector<int32_t> context(tokens.begin() + static_cast<ptrdiff_t>(i) - 4,
                                       tokens.begin() + static_cast<ptrdiff_t>(i));
    for (int32_t n = 2; n <= 4; ++n) ASSERT_EQ(after(loaded, context, n), after(table, context, n));
  }
  expect_bad_input([&] { table.save(folder.path() / "table"); }, {"table"});
}

/// The bytes of a saved table, to be damaged.
class NgramFile : public ::testing::Test {
 protected:
  NgramFile() {
    table_of(1, 2, {1, 2, 3, 1, 2, 4, 1, 2, 5}).save(folder_.path() / "whole");
    bytes_ = test::read_file(folder_.path() / "whole");
  }
  /// Writes a number and makes the checksum fit again.
  template <typename T>
  void put(size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
    const uint64_t checksum = crc64(std::as_bytes(std::span(bytes_)).first(bytes_.size() - 8));
    std::memcpy(bytes_.data() + bytes_.size() - 8, &checksum, sizeof checksum);
  }
  void expect_refused(const std::string& part) {
    const auto path = folder_.write("damaged", bytes_);
    expect_bad_input([&] { NgramTable::load(path); }, {"damaged", part});
  }

  TemporaryFolder folder_;
  std::string bytes_;
};

TEST_F(NgramFile, IsRefusedWhenAnyByteDiffersOrIsMissing) {
  const std::string whole = bytes_;
  for (size_t i = 0; i < whole.size(); i += 3) {
    bytes_[i] = static_cast<char>(whole[i] ^ 0x10);
    expect_refused("");
    bytes_ = whole;
  }
  for (const size_t size : {size_t{1}, size_t{63}, size_t{71}, whole.size() - 40, whole.size() - 1}) {
    bytes_ = whole.substr(0, size);
    expect_refused("");
  }
  bytes_ = whole + "x";
  expect_refused("damaged");
  expect_bad_input([&] { NgramTable::load(folder_.path() / "absent"); }, {"absent"});
}

TEST_F(NgramFile, IsRefusedWhenItSaysWhatNoTableSays) {
  constexpr size_t kEntry = 64;
  const std::string whole = bytes_;
  const auto refused = [&](size_t offset, auto value, const std::string& part) {
    SCOPED_TRACE(part + " at " + std::to_string(offset));
    put(offset, value);
    expect_refused(part);
    bytes_ = whole;
  };
  refused(0, 'x', "not a table of n-grams");
  refused(8, uint32_t{2}, "version 2");
  refused(12, int32_t{0}, "shape");
  refused(16, int32_t{33}, "shape");
  refused(20, int32_t{-1}, "shape");
  refused(24, int64_t{1000}, "shape");
  refused(24, int64_t{1} << 40, "shape");
  refused(32, uint64_t{1}, "length");
  refused(32, uint64_t{1} << 62, "length");
  refused(kEntry, uint32_t{2}, "belongs nowhere");
  refused(kEntry + 4, uint32_t{256}, "belongs nowhere");
  refused(kEntry + 16, int32_t{1000}, "outside its vocabulary");
  refused(kEntry + 16, int32_t{-1}, "outside its vocabulary");
  refused(kEntry + 32, uint8_t{0}, "belongs nowhere");
  refused(kEntry + 32, uint32_t{0x00010001}, "gap");  // counts 1, 0, 1, 0
}

TEST_F(NgramFile, IsRefusedWhenAPlaceOverflows) {
  std::string entries;
  for (int i = 0; i < 5; ++i) entries += bytes_.substr(64, 40);
  bytes_ = bytes_.substr(0, 64) + entries + std::string(8, '\0');
  put(32, uint64_t{5});
  expect_refused("more entries in one place");
}

}  // namespace
}  // namespace verbatim
