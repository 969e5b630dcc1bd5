#include "kv/hierarchical.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/matrix.h"
#include "kv/make_cache.h"
#include "support/machine_paths.h"
#include "support/random.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim {
namespace hierarchical_test {
namespace {

using test::machine_paths;
using test::MachinePath;

constexpr int64_t kHeadDim = 72;
constexpr int64_t kWidth = 128;
constexpr int64_t kGroup = 3;
constexpr int64_t kPositions = 1700;  // room; most tests use fewer
constexpr CacheOptions kHierarchical{.kind = CacheOptions::Kind::kHierarchical};

/// Keys, values and queries of one head for a sequence.
struct Past {
  std::vector<float> keys = test::random_floats(kPositions * kHeadDim, 1);
  std::vector<float> values = test::random_floats(kPositions * kHeadDim, 2);
  std::vector<BFloat16> queries = test::random_bf16(kPositions * kGroup * kWidth, 3, 0.5f);

  Past() {
    for (size_t i = 0; i < queries.size(); ++i) {
      if (i % kWidth >= kHeadDim) queries[i] = {0};
    }
  }
  const float* key(int64_t p) const { return keys.data() + p * kHeadDim; }
  const float* value(int64_t p) const { return values.data() + p * kHeadDim; }
};

/// What a decoder does with a cache, for one head.
class Pass {
 public:
  Pass(const Past& past, KvCache& cache) : past_(past), cache_(cache) {}

  /// Evaluates the rows first .. end - 1 together and returns their outputs.
  std::vector<float> run(int64_t first, int64_t end, CachePart part = CachePart::kWhole) {
    for (int64_t p = first; p < end; ++p) cache_.write(0, 0, p, past_.key(p), past_.value(p));
    if (cache_.has_positions_to_encode(0, end - 1)) cache_.encode_older_positions(0, 0, end - 1);
    cache_.finish_encoding(0, end - 1);
    std::vector<int32_t> positions;
    for (int64_t p = first; p < end; ++p) positions.push_back(static_cast<int32_t>(p));
    std::vector<float> out(positions.size() * kGroup * kHeadDim);
    AttentionBlock block{};
    block.queries = past_.queries.data() + first * kGroup * kWidth;
    block.positions = positions.data();
    block.rows = end - first;
    block.group = kGroup;
    block.head_dim = kHeadDim;
    block.width = kWidth;
    block.scale = 0.2f;
    block.cache = cache_.head(0, 0, part);
    block.out = out.data();
    block.out_stride = kGroup * kHeadDim;
    attend(block, scratch_);
    return out;
  }

 private:
  const Past& past_;
  KvCache& cache_;
  AttentionScratch scratch_;
};

std::unique_ptr<KvCache> empty_cache(const CacheOptions& options, int64_t capacity = kPositions) {
  return make_cache(options, {1, 1, kHeadDim}, capacity);
}

/// All rows' outputs, evaluated in passes of so many rows.
std::vector<float> outputs(const Past& past, const CacheOptions& options, int64_t rows,
                           int64_t end = kPositions) {
  const std::unique_ptr<KvCache> cache = empty_cache(options);
  Pass pass(past, *cache);
  std::vector<float> all;
  for (int64_t first = 0; first < end; first += rows) {
    const std::vector<float> out = pass.run(first, std::min(end, first + rows));
    all.insert(all.end(), out.begin(), out.end());
    cache->set_length(std::min(end, first + rows));
  }
  return all;
}

const Past& past() {
  static const Past past;
  return past;
}

const std::vector<CacheOptions>& coded_caches() {
  static const std::vector<CacheOptions> caches = {
      kHierarchical,
      parse_cache("hierarchical:group=32,buffer=512", "test"),
      parse_cache("hierarchical:bits=4,group=64", "test"),
      parse_cache("hierarchical:keys=position,values=channel", "test"),
      parse_cache("int8", "test"),
      parse_cache("f16", "test"),
  };
  return caches;
}

class CodedAttention : public testing::TestWithParam<MachinePath> {
 protected:
  void SetUp() override { LOWER_PATHS_TOO_LONG_FOR_SANITIZERS(GetParam().name); }
  test::SelectedKernels selected_{*GetParam().table};
};

INSTANTIATE_TEST_SUITE_P(, CodedAttention, testing::ValuesIn(machine_paths()),
                         test::path_name<testing::TestParamInfo<MachinePath>>);

TEST_P(CodedAttention, ARowDoesNotDependOnThePassesThatMadeThePast) {
  const bool scalar = GetParam().name == "scalar";
  const int64_t end = scalar ? 280 : 660;
  for (const CacheOptions& options : coded_caches()) {
    const std::vector<float> expected = outputs(past(), options, 256, end);
    for (const int64_t rows : {1, 150, 255}) {
      if (scalar && rows == 255) continue;
      const std::vector<float> out = outputs(past(), options, rows, end);
      ASSERT_EQ(std::memcmp(out.data(), expected.data(), out.size() * sizeof(float)), 0)
          << cache_name(options) << ", passes of " << rows << " rows";
    }
  }
}

TEST_P(CodedAttention, IsCloseToThatOfTheNumbersThemselves) {
  const int64_t end = 600;
  const std::vector<float> exact = outputs(past(), {}, 256, end);
  for (const CacheOptions& options : coded_caches()) {
    const std::vector<float> out = outputs(past(), options, 256, end);
    double squares = 0.0;
    double differences = 0.0;
    for (size_t i = 0; i < out.size(); ++i) {
      squares += exact[i] * exact[i];
      differences += std::pow(out[i] - exact[i], 2);
    }
    const double most = options.bits == 4 ? 0.15 : 0.012;
    EXPECT_LT(std::sqrt(differences / squares), most) << cache_name(options);
    if (options.kind == CacheOptions::Kind::kHierarchical) {
      EXPECT_GT(differences, 0.0) << cache_name(options);
    }
  }
}

// The draft's reading is made of the upper halves alone: the same as a cache that has no others.
TEST_P(CodedAttention, ADraftReadsTheUpperHalves) {
  const std::unique_ptr<KvCache> both = empty_cache(kHierarchical);
  const std::unique_ptr<KvCache> upper = empty_cache(parse_cache("hierarchical:bits=4", "test"));
  Pass of_both(past(), *both);
  Pass of_upper(past(), *upper);
  for (int64_t first = 0; first < 900; first += 225) {
    of_both.run(first, first + 225);
    of_upper.run(first, first + 225);
  }
  EXPECT_EQ(of_both.run(900, 901, CachePart::kDraft), of_upper.run(900, 901));
  EXPECT_NE(of_both.run(900, 901, CachePart::kDraft), of_both.run(900, 901));
}

TEST_P(CodedAttention, DraftsThatAreTakenBackLeaveNoTrace) {
  const std::vector<float> plain = outputs(past(), kHierarchical, 1, 560);
  const std::unique_ptr<KvCache> cache = empty_cache(kHierarchical);
  Pass pass(past(), *cache);
  Past wrong = past();
  wrong.keys = test::random_floats(wrong.keys.size(), 10);
  wrong.values = test::random_floats(wrong.values.size(), 11);
  Pass drafts(wrong, *cache);
  pass.run(0, 175);
  pass.run(175, 350);
  cache->set_length(350);
  for (int64_t first = 350, step = 1; first < 560; first += step, step = step % 60 + 1) {
    // A draft reads and writes ahead, row by row and at once, over flushes too; then the truth overwrites it.
    for (int64_t ahead = 0; ahead < 64 && first + ahead < kPositions; ++ahead) {
      drafts.run(first + ahead, first + ahead + 1, CachePart::kDraft);
      cache->set_length(first + ahead + 1);
    }
    cache->set_length(first);
    drafts.run(first, first + 64);
    const int64_t end = std::min<int64_t>(560, first + step);
    const std::vector<float> out = pass.run(first, end);
    cache->set_length(end);
    ASSERT_EQ(std::memcmp(out.data(), plain.data() + first * kGroup * kHeadDim, out.size() * sizeof(float)),
              0)
        << "rows " << first << " to " << end;
  }
}

TEST_P(CodedAttention, ASequenceThatIsCutShortGoesOnAsIfItHadBeenShort) {
  const std::vector<float> plain = outputs(past(), kHierarchical, 256, 1200);
  const bool scalar = GetParam().name == "scalar";
  for (const int64_t length : {1150, 1100, 1025, 640, 3}) {
    if (scalar && length != 1100) continue;
    const std::unique_ptr<KvCache> cache = empty_cache(kHierarchical);
    Pass pass(past(), *cache);
    for (int64_t first = 0; first < 1400; first += 200) pass.run(first, first + 200);
    cache->set_length(1400);
    cache->set_length(length);
    ASSERT_LE(cache->length(), length);
    if (length < 700) {
      EXPECT_EQ(cache->length(), 0) << "what was in full precision is gone";
    }
    std::vector<float> out;
    for (int64_t first = cache->length(); first < 1200; first += 200) {
      out = pass.run(first, std::min<int64_t>(1200, first + 200));
    }
    const float* const expected = plain.data() + plain.size() - out.size();
    ASSERT_EQ(std::memcmp(out.data(), expected, out.size() * sizeof(float)), 0) << "cut to " << length;
  }
}

// Where every token is known, the last one is evaluated again for its logits.
TEST_P(CodedAttention, TheLastRowBeforeACutCanBeEvaluatedAgain) {
  const std::vector<float> plain = outputs(past(), kHierarchical, 256, 256);
  const std::unique_ptr<KvCache> cache = empty_cache(kHierarchical);
  Pass pass(past(), *cache);
  for (int64_t first = 0; first < 900; first += 225) pass.run(first, first + 225);
  cache->set_length(900);
  cache->set_length(255);
  const int64_t first = std::min<int64_t>(cache->length(), 254);
  const std::vector<float> out = pass.run(first, 255);
  const float* const expected = plain.data() + first * kGroup * kHeadDim;
  EXPECT_EQ(std::memcmp(out.data(), expected, out.size() * sizeof(float)), 0);
}

/// The attention of the last of 400 positions of one head.
std::vector<float> last_row(const CacheOptions& options, int64_t head_dim) {
  const int64_t positions = 400;
  const int64_t width = round_up(head_dim, kQueryStep);
  const std::vector<float> numbers = test::random_floats(static_cast<size_t>(2 * positions * head_dim), 4);
  std::vector<BFloat16> queries = test::random_bf16(static_cast<size_t>(width), 5, 0.5f);
  std::fill(queries.begin() + head_dim, queries.end(), BFloat16{0});
  const std::unique_ptr<KvCache> cache = make_cache(options, {1, 2, head_dim}, positions);
  for (int64_t head : {1, 0}) {  // what one head's codes overran would be the other's
    for (int64_t p = 0; p < positions; ++p) {
      const float* const key = numbers.data() + (p + head * 7) % positions * 2 * head_dim;
      cache->write(0, head, p, key, key + head_dim);
    }
    if (cache->has_positions_to_encode(0, positions - 1))
      cache->encode_older_positions(0, head, positions - 1);
  }
  cache->finish_encoding(0, positions - 1);
  std::vector<float> out(static_cast<size_t>(2 * head_dim));
  const int32_t position = positions - 1;
  for (int64_t head = 0; head < 2; ++head) {
    AttentionBlock block{};
    block.queries = queries.data();
    block.positions = &position;
    block.rows = 1;
    block.group = 1;
    block.head_dim = head_dim;
    block.width = width;
    block.scale = 0.1f;
    block.cache = cache->head(0, head);
    block.out = out.data() + head * head_dim;
    block.out_stride = head_dim;
    AttentionScratch scratch;
    attend(block, scratch);
  }
  return out;
}

TEST_P(CodedAttention, TakesHeadsOfAnySize) {
  for (const int64_t head_dim : {8, 80, 128, 160, 192, 256}) {
    const std::vector<float> exact = last_row({}, head_dim);
    for (const char* name : {"hierarchical", "hierarchical:group=32", "int8"}) {
      const std::vector<float> out = last_row(parse_cache(name, "test"), head_dim);
      double squares = 0.0;
      double differences = 0.0;
      for (size_t i = 0; i < out.size(); ++i) {
        squares += exact[i] * exact[i];
        differences += std::pow(out[i] - exact[i], 2);
      }
      EXPECT_LT(std::sqrt(differences / squares), 0.02) << name << ", head dimension " << head_dim;
    }
  }
}

TEST(HierarchicalCache, RefusesWhatItCannotStore) {
  EXPECT_THROW(make_cache(kHierarchical, {1, 1, 264}, 100), Error);
  CacheOptions options = kHierarchical;
  options.buffer = 128;
  EXPECT_THROW(make_cache(options, {1, 1, 64}, 100), Error);
  options = kHierarchical;
  options.group = 48;
  EXPECT_THROW(make_cache(options, {1, 1, 64}, 100), Error);
}

TEST(HierarchicalCache, KeepsTheLatestPositionsInFullPrecision) {
  const std::unique_ptr<KvCache> cache = empty_cache(kHierarchical);
  const CodedChunks coded = cache->head(0, 0).coded;
  for (int64_t p = 0; p < 4000; ++p) {
    const int64_t full = p + 1 - coded.end_chunk(p) * kAttentionChunk;
    ASSERT_GE(full, std::min<int64_t>(p + 1, 128)) << p;
    ASSERT_LT(full, 256) << p;
  }
}

// Narrow heads too, whose codes have more scales: what the ring beside the codes takes counts.
TEST(HierarchicalCache, TakesLittleMoreThanHalfOfWhatBf16Takes) {
  constexpr int64_t kTokens = 32768;
  for (const int64_t head_dim : {64, 128}) {
    const CacheShape shape{22, 8, head_dim};
    const auto dense = static_cast<double>(cache_bytes({}, shape, kTokens));
    const auto share = [&](const char* cache) {
      return static_cast<double>(cache_bytes(parse_cache(cache, "test"), shape, kTokens)) / dense;
    };
    EXPECT_LT(share("hierarchical"), 0.55) << head_dim;
    EXPECT_LT(share("int8"), 0.55) << head_dim;
    EXPECT_LT(share("hierarchical:bits=4"), 0.3) << head_dim;
  }
}

TEST(HierarchicalCache, BoundsTheRowsOfAPassByWhatItKeepsInFullPrecision) {
  EXPECT_EQ(empty_cache(kHierarchical)->most_rows(), 256);
  // The ring holds all there can be.
  EXPECT_GE(empty_cache(kHierarchical, 400)->most_rows(), 400);
}

TEST(CacheNames, SayEveryOption) {
  for (const char* name : {"bf16", "f16", "int8", "hierarchical", "hierarchical:group=64,buffer=512,bits=4",
                           "hierarchical:keys=position,values=channel"}) {
    EXPECT_EQ(cache_name(parse_cache(name, "test")), name);
  }
  for (const char* name :
       {"", "fp16", "bf16:group=32", "hierarchical:group", "hierarchical:group=100", "hierarchical:group=64x",
        "hierarchical:buffer=128", "hierarchical:bits=2", "hierarchical:keys=token", "hierarchical:,"}) {
    EXPECT_THROW(parse_cache(name, "test"), Error) << name;
  }
}

}  // namespace
}  // namespace hierarchical_test
}  // namespace verbatim
