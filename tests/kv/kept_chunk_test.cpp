#include "kv/kept_chunk.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

namespace verbatim {
namespace {

class KeptChunk : public testing::Test {
 protected:
  KeptChunk() {
    std::iota(tokens_.begin(), tokens_.end(), 7);
    for (size_t i = 0; i < stored_.size(); ++i) stored_[i] = static_cast<std::byte>(i * 31);
    KeptChunkHeader header = expected();
    header.checksum = kept_chunk_checksum(header, stored_);
    file_.resize(sizeof(header) + stored_.size());
    std::memcpy(file_.data(), &header, sizeof(header));
    std::ranges::copy(stored_, file_.begin() + sizeof(header));
  }
  KeptChunkHeader expected() const { return kept_chunk_header(origin_, parent_, tokens_, stored_.size()); }

  ChunkOrigin origin_{
      .model = {std::byte{5}}, .path = {'x'}, .reading = {'f'}, .layers = 2, .kv_heads = 1, .head_dim = 32};
  Digest parent_ = root_key(origin_);
  std::array<int32_t, 128> tokens_;
  std::array<std::byte, 300> stored_;
  std::vector<std::byte> file_;
};

TEST_F(KeptChunk, IsFoundInItsFile) {
  const std::span<const std::byte> found = kept_chunk(file_, expected());
  EXPECT_TRUE(std::ranges::equal(found, stored_));
}

TEST_F(KeptChunk, IsNotFoundWhereAnyBitIsWrong) {
  for (size_t i = 0; i < file_.size() * 8; ++i) {
    std::vector<std::byte> file = file_;
    file[i / 8] ^= static_cast<std::byte>(1 << i % 8);
    ASSERT_TRUE(kept_chunk(file, expected()).empty()) << "bit " << i;
  }
}

TEST_F(KeptChunk, IsNotFoundInAFileOfAnotherLength) {
  for (size_t size = 0; size < file_.size(); ++size) {
    ASSERT_TRUE(kept_chunk(std::span(file_).first(size), expected()).empty()) << size;
  }
  file_.push_back({});
  EXPECT_TRUE(kept_chunk(file_, expected()).empty());
}

// An undamaged file is not believed either when it is another chunk's.
TEST_F(KeptChunk, IsNotFoundInTheFileOfAnother) {
  const std::vector<std::function<void()>> changes = {
      [&] { tokens_[127] += 1; },     [&] { parent_[31] ^= std::byte{1}; }, [&] { origin_.model[0] = {}; },
      [&] { origin_.path[1] = 'y'; }, [&] { origin_.reading[0] = 'g'; },    [&] { origin_.layers = 3; },
      [&] { origin_.kv_heads = 2; },  [&] { origin_.head_dim = 64; }};
  const auto [origin, parent, tokens] = std::tuple(origin_, parent_, tokens_);
  for (size_t i = 0; i < changes.size(); ++i) {
    changes[i]();
    EXPECT_TRUE(kept_chunk(file_, expected()).empty()) << i;
    std::tie(origin_, parent_, tokens_) = std::tuple(origin, parent, tokens);
  }
  EXPECT_FALSE(kept_chunk(file_, expected()).empty());
}

TEST_F(KeptChunk, HasAKeyOfItsOriginAndItsTokens) {
  const Digest key = chunk_key(parent_, tokens_);
  EXPECT_EQ(key, chunk_key(root_key(origin_), tokens_));
  EXPECT_NE(key, chunk_key(key, tokens_));
  tokens_[0] += 1;
  EXPECT_NE(key, chunk_key(parent_, tokens_));
  tokens_[0] -= 1;
  origin_.reading[0] = 'g';
  EXPECT_NE(key, chunk_key(root_key(origin_), tokens_));
}

}  // namespace
}  // namespace verbatim
