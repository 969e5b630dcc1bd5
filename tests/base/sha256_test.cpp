#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace verbatim {
namespace {

std::string sha256_of(const std::string& text, size_t piece = 1000) {
  Sha256 sum;
  for (size_t i = 0; i < text.size(); i += piece) {
    sum.add(std::as_bytes(std::span(text).subspan(i, std::min(piece, text.size() - i))));
  }
  return hexadecimal(sum.digest());
}

// The examples of the standard.
TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowTheBytesAreCut) {
  for (size_t size = 0; size < 200; ++size) {
    std::string text(size, ' ');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7);
    const std::string whole = sha256_of(text);
    for (const size_t piece : {1, 3, 63, 64, 65}) ASSERT_EQ(sha256_of(text, piece), whole) << size;
  }
}

}  // namespace
}  // namespace verbatim
