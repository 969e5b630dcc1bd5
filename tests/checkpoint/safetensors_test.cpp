#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include "checkpoint/bad_input.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace safetensors_test {
namespace {

using test::bytes_of;
using test::expect_bad_input;
using test::NamedTensor;
using test::safetensors_file;

std::map<std::string, TensorView> parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "some.safetensors");
}

void expect_refused(const std::string& bytes, std::initializer_list<std::string> parts) {
  expect_bad_input([&] { parse(bytes); }, {"some.safetensors"});
  expect_bad_input([&] { parse(bytes); }, parts);
}

/// A file of the one tensor "t" with these fields and 16 bytes of data.
std::string with_tensor(const std::string& fields) {
  return safetensors_file(R"({"t":{)" + fields + "}}", std::string(16, '\0'));
}

TEST(Safetensors, ReadsEveryDtype) {
  const std::vector<NamedTensor> tensors = {{"a", {2, 2}, {1.0f, -2.0f, 0.5f, 0.0f}},
                                            {"b", {3}, {3.0f, 4.0f, 5.0f}}};
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const std::string bytes = safetensors_file(tensors, dtype);
    const auto read = parse(bytes);
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read.at("a").shape, (std::vector<int64_t>{2, 2}));
    std::vector<float> row(2);
    read.at("a").read_row(0, row);
    EXPECT_EQ(row, (std::vector<float>{1.0f, -2.0f}));
    std::vector<float> vector(3);
    read.at("b").read_row(0, vector);
    EXPECT_EQ(vector, tensors[1].values);
  }
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string bytes = safetensors_file({{"a", {2}, {1.0f, 2.0f}}, {"b", {1}, {3.0f}}}, DType::kF32);
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A copy of the exact size, so that a sanitizer sees a read beyond it.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    expect_bad_input([&] { parse_safetensors(std::as_bytes(std::span(cut)), "some.safetensors"); },
                     {"some.safetensors"});
  }
}

TEST(Safetensors, RefusesAHeaderThatCannotFit) {
  for (const uint64_t length : {uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{7}, uint64_t{100'000'001}}) {
    expect_refused(bytes_of(length) + "{}", {std::to_string(length), "at most"});
  }
  expect_refused(bytes_of<uint64_t>(3) + "{}", {"header of 3 bytes", "truncated"});
  EXPECT_TRUE(parse(bytes_of<uint64_t>(4) + "{}  ").empty());
}

TEST(Safetensors, RefusesBadHeaders) {
  expect_refused(safetensors_file("[]", ""), {"no JSON object"});
  expect_refused(safetensors_file("{\"a\": \n", ""), {"not valid JSON"});
  expect_refused(safetensors_file("", ""), {"not valid JSON"});
  expect_refused(safetensors_file(R"({"t":1e999})", ""), {"number that is too large"});
  expect_refused(safetensors_file(R"({"t":{},"t":{}})", ""), {"t is there twice"});
  expect_refused(safetensors_file(R"({"t":7})", ""), {"tensor t lacks"});
  expect_refused(with_tensor(R"("dtype":"F32","shape":[4])"), {"tensor t lacks"});
}

TEST(Safetensors, RefusesDeepNesting) {
  for (const char* opening : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += opening;
    expect_refused(safetensors_file(deep, ""), {"nests deeper"});
  }
}

TEST(Safetensors, RefusesBadTensors) {
  parse(with_tensor(R"("dtype":"F32","shape":[2,2],"data_offsets":[0,16])"));
  expect_refused(with_tensor(R"("dtype":"I64","shape":[2],"data_offsets":[0,16])"),
                 {"tensor t", "I64", "F32, F16 and BF16"});
  expect_refused(with_tensor(R"("dtype":1,"shape":[2],"data_offsets":[0,16])"), {"dtype of tensor t"});
  expect_refused(with_tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,16])"),
                 {"tensor t", "16 bytes", "[3]"});
  expect_refused(with_tensor(R"("dtype":"F32","shape":[5],"data_offsets":[0,20])"),
                 {"tensor t", "0 to 20 of 16"});
  expect_refused(with_tensor(R"("dtype":"F32","shape":[4],"data_offsets":[16,0])"), {"tensor t", "no range"});
  expect_refused(with_tensor(R"("dtype":"F32","shape":[4],"data_offsets":[0])"), {"tensor t", "no range"});
  expect_refused(with_tensor(R"("dtype":"F32","shape":[-4],"data_offsets":[0,16])"), {"shape of tensor t"});
  expect_refused(with_tensor(R"("dtype":"F32","shape":[4.0],"data_offsets":[0,16])"), {"shape of tensor t"});
  expect_refused(with_tensor(R"("dtype":"F32","shape":4,"data_offsets":[0,16])"), {"shape of tensor t"});
  expect_refused(with_tensor(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,4],"data_offsets":[0,16])"),
                 {"9 dimensions"});
  expect_refused(with_tensor(R"("dtype":"F32","shape":[4],"data_offsets":[0,18446744073709551615])"),
                 {"data_offsets of tensor t"});
  // The product of the shape is 2^64 + 4.
  expect_refused(with_tensor(R"("dtype":"F32","shape":[4,4611686018427387905],"data_offsets":[0,16])"),
                 {"tensor t", "16 bytes"});
}

TEST(Safetensors, RefusesOverlappingTensors) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})";
  expect_refused(safetensors_file(header, std::string(16, '\0')), {"a and b overlap"});
}

TEST(Safetensors, NamesInErrorsStayOnOneLine) {
  expect_refused(safetensors_file("{\"a\\nb\\u0000" + std::string(500, 'c') + "\":{}}", ""),
                 {"a b ccc", "..."});
}

TEST(Safetensors, LeavesOutBuffersThatTheArchitectureImplies) {
  const std::string fields = R"({"dtype":"I64","shape":[2],"data_offsets":[0,16]})";
  const std::string header = R"({"model.layers.0.self_attn.rotary_emb.inv_freq":)" + fields +
                             R"(,"h.0.attn.bias":)" + fields + R"(,"h.0.attn.masked_bias":)" + fields + "}";
  EXPECT_TRUE(parse(safetensors_file(header, std::string(16, '\0'))).empty());
}

TEST(Safetensors, OpensShardsOnce) {
  const test::TemporaryFolder folder;
  test::write_tiny_llama(folder.path(), {.shards = 3});
  const SafetensorsModel model = open_safetensors(folder.path());
  EXPECT_EQ(model.files.size(), 3u);
  EXPECT_EQ(model.tensors.size(), test::tiny_tensors({}).size());
}

TEST(Safetensors, RefusesBadIndexes) {
  const test::TemporaryFolder folder;
  const auto index = [&](const std::string& text) { folder.write("model.safetensors.index.json", text); };
  const auto expect_index_refused = [&](std::initializer_list<std::string> parts) {
    expect_bad_input([&] { open_safetensors(folder.path()); }, {"model.safetensors.index.json"});
    expect_bad_input([&] { open_safetensors(folder.path()); }, parts);
  };
  index("{}");
  expect_index_refused({"weight_map"});
  index(R"({"weight_map":[]})");
  expect_index_refused({"weight_map"});
  index(R"({"weight_map":{"t":7}})");
  expect_index_refused({"shard of t"});
  index(std::string(100'000, '['));
  expect_index_refused({"nests deeper"});
  index(R"({"weight_map":{"t":"a.safetensors"}})");
  expect_bad_input([&] { open_safetensors(folder.path()); }, {"a.safetensors"});
  folder.write("a.safetensors", safetensors_file({{"u", {1}, {1.0f}}}, DType::kF32));
  expect_index_refused({"tensor t", "a.safetensors"});
}

TEST(Safetensors, RefusesShardsOutsideTheFolder) {
  const test::TemporaryFolder folder;
  folder.write("outside.safetensors", safetensors_file({{"t", {1}, {1.0f}}}, DType::kF32));
  const auto model = folder.path() / "model";
  std::filesystem::create_directory(model);
  for (const std::string& shard :
       {std::string("../outside.safetensors"), std::string("x/../../outside.safetensors"),
        (folder.path() / "outside.safetensors").string(), std::string()}) {
    folder.write("model/model.safetensors.index.json", R"({"weight_map":{"t":")" + shard + "\"}}");
    expect_bad_input([&] { open_safetensors(model); }, {"index.json", "outside the model's folder"});
  }
}

}  // namespace
}  // namespace safetensors_test
}  // namespace verbatim
