#include "checkpoint/gguf.h"

#include <gtest/gtest.h>

#include "checkpoint/bad_input.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

using test::bytes_of;
using test::expect_bad_input;
using test::GgufBuilder;

GgufFile parse(const std::string& bytes) {
  return parse_gguf(std::as_bytes(std::span(bytes)), "some.gguf");
}

void expect_refused(const std::string& bytes, std::initializer_list<std::string> parts) {
  expect_bad_input([&] { parse(bytes); }, {"some.gguf"});
  expect_bad_input([&] { parse(bytes); }, parts);
}

GgufBuilder small_file() {
  GgufBuilder builder;
  builder.text("general.architecture", "llama").number("n", 7u).number("x", 0.5f).boolean("yes", true);
  builder.texts("list", {"a", "", "ccc"});
  return builder;
}

TEST(Gguf, ReadsMetadataOfEveryType) {
  GgufBuilder builder = small_file();
  builder.raw("u8", bytes_of<uint32_t>(0) + bytes_of<uint8_t>(200));
  builder.raw("i8", bytes_of<uint32_t>(1) + bytes_of<int8_t>(-3));
  builder.raw("u16", bytes_of<uint32_t>(2) + bytes_of<uint16_t>(60000));
  builder.raw("i16", bytes_of<uint32_t>(3) + bytes_of<int16_t>(-30000));
  builder.raw("i32", bytes_of<uint32_t>(5) + bytes_of<int32_t>(-2000000000));
  builder.raw("u64", bytes_of<uint32_t>(10) + bytes_of<uint64_t>(1ull << 62));
  builder.raw("i64", bytes_of<uint32_t>(11) + bytes_of<int64_t>(-(1ll << 62)));
  builder.raw("f64", bytes_of<uint32_t>(12) + bytes_of(0.1));
  builder.raw("bools", bytes_of<uint32_t>(9) + bytes_of<uint32_t>(7) + bytes_of<uint64_t>(3) +
                           std::string("\1\0\1", 3));
  builder.raw("floats",
              bytes_of<uint32_t>(9) + bytes_of<uint32_t>(6) + bytes_of<uint64_t>(1) + bytes_of(-1.5f));
  const GgufFile gguf = parse(builder.build());
  EXPECT_EQ(gguf.version, 3u);
  EXPECT_EQ(gguf_string(gguf, "general.architecture"), "llama");
  EXPECT_EQ(gguf_integer(gguf, "n"), 7);
  EXPECT_EQ(gguf_float(gguf, "x"), 0.5);
  EXPECT_EQ(gguf_float(gguf, "n"), 7.0);
  EXPECT_EQ(gguf_bool(gguf, "yes"), true);
  EXPECT_EQ(gguf_integer(gguf, "u8"), 200);
  EXPECT_EQ(gguf_integer(gguf, "i8"), -3);
  EXPECT_EQ(gguf_integer(gguf, "u16"), 60000);
  EXPECT_EQ(gguf_integer(gguf, "i16"), -30000);
  EXPECT_EQ(gguf_integer(gguf, "i32"), -2000000000);
  EXPECT_EQ(gguf_integer(gguf, "u64"), 1ll << 62);
  EXPECT_EQ(gguf_integer(gguf, "i64"), -(1ll << 62));
  EXPECT_EQ(gguf_float(gguf, "f64"), 0.1);
  EXPECT_EQ(gguf_array(gguf, "list")->strings, (std::vector<std::string>{"a", "", "ccc"}));
  EXPECT_EQ(gguf_array(gguf, "bools")->integers, (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(gguf_array(gguf, "floats")->floats, (std::vector<double>{-1.5}));
}

TEST(Gguf, LooksUpNothingForAbsentKeysAndRefusesOtherTypes) {
  const GgufFile gguf = parse(small_file().build());
  EXPECT_EQ(gguf_string(gguf, "absent"), std::nullopt);
  EXPECT_EQ(gguf_integer(gguf, "absent"), std::nullopt);
  EXPECT_EQ(gguf_float(gguf, "absent"), std::nullopt);
  EXPECT_EQ(gguf_bool(gguf, "absent"), std::nullopt);
  EXPECT_EQ(gguf_array(gguf, "absent"), nullptr);
  expect_bad_input([&] { gguf_string(gguf, "n"); }, {"metadata n", "a string"});
  expect_bad_input([&] { gguf_integer(gguf, "x"); }, {"metadata x", "an integer"});
  expect_bad_input([&] { gguf_float(gguf, "yes"); }, {"metadata yes", "a number"});
  expect_bad_input([&] { gguf_bool(gguf, "n"); }, {"metadata n", "true or false"});
  expect_bad_input([&] { gguf_array(gguf, "n"); }, {"metadata n", "an array"});
}

TEST(Gguf, ReadsTensorsOfEveryTypeInRowMajorShape) {
  GgufBuilder builder = small_file();
  const std::vector<float> values(96, 0.5f);
  const DType dtypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0};
  for (const DType dtype : dtypes)
    builder.tensor(dtype_name(dtype), {3, 32}, dtype, test::encode(dtype, values));
  const std::string bytes = builder.build();
  const GgufFile gguf = parse(bytes);
  ASSERT_EQ(gguf.tensors.size(), 4u);
  for (const DType dtype : dtypes) {
    const TensorView& tensor = gguf.tensors.at(dtype_name(dtype));
    EXPECT_EQ(tensor.shape, (std::vector<int64_t>{3, 32}));
    std::vector<float> row(32);
    tensor.read_row(2, row);
    for (const float value : row) EXPECT_NEAR(value, 0.5f, 1e-3f);
  }
}

TEST(Gguf, HonoursTheAlignment) {
  GgufBuilder builder;
  builder.number("general.alignment", 256u)
      .tensor("t", {2}, DType::kF32, test::encode(DType::kF32, {1.0f, 2.0f}));
  const std::string bytes = builder.build(3, 256);
  const GgufFile gguf = parse(bytes);
  EXPECT_EQ(gguf.tensors.at("t").data.data() - std::as_bytes(std::span(bytes)).data(), 256);
  for (const uint32_t alignment : {0u, 3u, 48u, 1u << 31}) {
    expect_refused(GgufBuilder().number("general.alignment", alignment).build(), {"general.alignment"});
  }
  expect_refused(GgufBuilder().text("general.alignment", "32").build(), {"general.alignment", "an integer"});
  GgufBuilder odd;
  odd.raw_tensor("t", {1}, 0, 4);
  expect_refused(odd.build() + std::string(64, '\0'), {"tensor t", "alignment"});
}

TEST(Gguf, ReadsVersion2AndRefusesOthers) {
  EXPECT_EQ(parse(small_file().build(2)).version, 2u);
  expect_refused(small_file().build(1), {"version 1", "2 and 3"});
  expect_refused(small_file().build(4), {"version 4"});
  expect_refused(small_file().build(0x03000000), {"big-endian"});
  expect_refused("GGML" + std::string(60, '\0'), {"not a GGUF file"});
}

TEST(Gguf, RefusesEveryTruncation) {
  GgufBuilder builder = small_file();
  builder.tensor("t", {2, 32}, DType::kF16, std::string(128, 'x'));
  const std::string bytes = builder.build();
  parse(bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A copy of the exact size, so that a sanitizer sees a read beyond it.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    expect_bad_input([&] { parse_gguf(std::as_bytes(std::span(cut)), "some.gguf"); }, {"some.gguf"});
  }
}

TEST(Gguf, RefusesLyingLengths) {
  for (const uint64_t length : {uint64_t{1000}, uint64_t{1} << 40, uint64_t{1} << 63, ~uint64_t{0}}) {
    GgufBuilder text;
    text.raw("key", bytes_of<uint32_t>(8) + bytes_of(length) + "abc");
    expect_refused(text.build(), {"length", "beyond the file"});
    for (const uint32_t type : {0u, 4u, 6u, 7u, 8u, 12u}) {
      GgufBuilder array;
      array.raw("my.array", bytes_of<uint32_t>(9) + bytes_of(type) + bytes_of(length) + "abc");
      expect_refused(array.build(), {"my.array", "elements"});
    }
    const std::string counts = "GGUF" + bytes_of<uint32_t>(3);
    expect_refused(counts + bytes_of(length) + bytes_of<uint64_t>(0), {"the file ends"});
    expect_refused(counts + bytes_of<uint64_t>(0) + bytes_of(length), {"the file ends"});
  }
}

TEST(Gguf, RefusesBadMetadata) {
  expect_refused(GgufBuilder().number("k", 1u).number("k", 2u).build(), {"metadata k", "twice"});
  expect_refused(GgufBuilder().raw("k", bytes_of<uint32_t>(13) + "xx").build(),
                 {"k has the unknown value type 13"});
  expect_refused(GgufBuilder().raw("k", bytes_of<uint32_t>(7) + "x").build(),
                 {"k is neither true nor false"});
  const std::string nested = bytes_of<uint32_t>(9) + bytes_of<uint32_t>(9) + bytes_of<uint64_t>(1);
  expect_refused(GgufBuilder().raw("k", nested).build(), {"k is an array of arrays"});
  const std::string strange = bytes_of<uint32_t>(9) + bytes_of<uint32_t>(99) + bytes_of<uint64_t>(1);
  expect_refused(GgufBuilder().raw("k", strange).build(), {"k is an array of the unknown type 99"});
  expect_refused(GgufBuilder().raw("a\nb\x80", bytes_of<uint32_t>(77)).build(), {"a b\xef\xbf\xbd"});
}

TEST(Gguf, RefusesBadTensors) {
  const std::string space(256, '\0');
  const auto with = [&](const std::vector<uint64_t>& dimensions, uint32_t type, uint64_t offset) {
    return GgufBuilder().raw_tensor("my.tensor", dimensions, type, offset).build() + space;
  };
  parse(with({32}, 0, 0));
  expect_refused(with({32}, 19, 0),
                 {"my.tensor", "IQ1_S", "use a file of one of", "F32, F16, BF16, Q4_0", "Q4_K"});
  expect_refused(with({32}, 1234, 0), {"my.tensor", "number 1234"});
  expect_refused(with({}, 0, 0), {"my.tensor", "0 dimensions"});
  expect_refused(with({1, 1, 1, 1, 1}, 0, 0), {"my.tensor", "5 dimensions"});
  expect_refused(with({0}, 0, 0), {"my.tensor", "dimension of 0"});
  expect_refused(with({31}, 8, 0), {"my.tensor", "[31]", "Q8_0", "blocks have 32"});
  expect_refused(with({32}, 12, 0), {"my.tensor", "[32]", "Q4_K", "blocks have 256"});
  expect_refused(with({256, 2}, 12, 0), {"my.tensor", "beyond the end"});
  expect_refused(with({65}, 0, 0), {"my.tensor", "beyond the end"});
  expect_refused(with({32}, 0, 160), {"my.tensor", "beyond the end"});
  expect_refused(with({32}, 0, ~uint64_t{31}), {"my.tensor", "beyond the end"});
  expect_refused(with({uint64_t{1} << 63}, 0, 0), {"my.tensor", "too large"});
  expect_refused(with({uint64_t{1} << 62}, 0, 0), {"my.tensor", "cannot have the shape"});
  expect_refused(with({uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0), {"my.tensor", "cannot have the shape"});
}

TEST(Gguf, RefusesTensorsThatOverlapOrRepeat) {
  GgufBuilder overlapping;
  overlapping.raw_tensor("first", {16}, 0, 0).raw_tensor("second", {16}, 0, 32);
  expect_refused(overlapping.build() + std::string(256, '\0'), {"first", "second", "overlap"});
  GgufBuilder repeating;
  repeating.raw_tensor("same", {8}, 0, 0).raw_tensor("same", {8}, 0, 32);
  expect_refused(repeating.build() + std::string(256, '\0'), {"same", "twice"});
}

TEST(PublicGguf, OpensVocabularyOnlyFiles) {
  NEEDS_PUBLIC_DATA();
  const auto folder = test::public_data() / "tokenizers" / "gguf-vocabs";
  const std::pair<const char*, size_t> files[] = {{"ggml-vocab-llama-spm.gguf", 32000},
                                                  {"ggml-vocab-gpt-2.gguf", 50257},
                                                  {"ggml-vocab-deepseek-coder.gguf", 32256}};
  for (const auto& [name, size] : files) {
    const GgufFile gguf = open_gguf(folder / name);
    EXPECT_TRUE(gguf.tensors.empty());
    EXPECT_EQ(gguf_array(gguf, "tokenizer.ggml.tokens")->strings.size(), size);
    EXPECT_EQ(gguf_array(gguf, "tokenizer.ggml.token_type")->integers.size(), size);
  }
  const GgufFile llama = open_gguf(folder / "ggml-vocab-llama-spm.gguf");
  EXPECT_EQ(gguf_array(llama, "tokenizer.ggml.scores")->floats.size(), 32000u);
  EXPECT_EQ(gguf_bool(llama, "tokenizer.ggml.add_bos_token"), true);
}

}  // namespace
}  // namespace verbatim
