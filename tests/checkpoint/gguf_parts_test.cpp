#include "checkpoint/gguf_parts.h"

#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/bad_input.h"
#include "support/split_gguf.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using test::expect_bad_input;
using test::SplitPart;

/// A tiny model in three parts, which tests change before they are written.
class GgufParts : public testing::Test {
 protected:
  GgufParts() {
    test::write_tiny_gguf(whole_path_);
    whole_ = open_gguf(whole_path_);
    parts_ = test::split_parts(whole_, (whole_.tensors.size() + 2) / 3);
    EXPECT_EQ(parts_.size(), 3u);
  }

  fs::path path(size_t number) const { return folder_.path() / test::part_name(number, 3); }
  void write() const {
    for (size_t i = 0; i < parts_.size(); ++i) write(path(i + 1), test::part_bytes(whole_, parts_[i]));
  }
  static void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  void expect_refused(std::initializer_list<std::string> words) const {
    expect_bad_input([&] { open_checkpoint(path(1)); }, words);
  }

  test::TemporaryFolder folder_;
  fs::path whole_path_ = folder_.path() / "whole.gguf";
  GgufFile whole_;
  std::vector<SplitPart> parts_;
};

void expect_same_tensors(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) {
    const TensorView& other = b.tensors.at(name);
    EXPECT_EQ(tensor.dtype, other.dtype) << name;
    EXPECT_EQ(tensor.shape, other.shape) << name;
    EXPECT_TRUE(std::ranges::equal(tensor.data, other.data)) << name;
  }
}

TEST_F(GgufParts, OpenAsTheWholeFileDoesWhicheverIsNamed) {
  write();
  const Checkpoint whole = open_checkpoint(whole_path_);
  for (size_t number = 1; number <= 3; ++number) {
    const Checkpoint parts = open_checkpoint(path(number));
    EXPECT_EQ(parts.config, whole.config);
    EXPECT_EQ(parts.files.size(), 3u);
    EXPECT_EQ(parts.path, path(number));
    expect_same_tensors(parts, whole);
  }
}

TEST_F(GgufParts, MayBeginWithOneThatHoldsNoTensors) {
  const test::TemporaryFolder other;
  const auto paths = test::write_parts(whole_path_, other.path(), 5, true);
  expect_same_tensors(open_checkpoint(paths.front()), open_checkpoint(whole_path_));
}

TEST_F(GgufParts, OpenFromTheFolderThatTheyLieIn) {
  write();
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  EXPECT_EQ(open_gguf(test::part_name(2, 3)).tensors.size(), whole_.tensors.size());
  fs::current_path(before);
}

TEST_F(GgufParts, AreRefusedWhenOneIsMissing) {
  write();
  fs::remove(path(2));
  expect_refused({test::part_name(1, 3), "one of 3 parts", test::part_name(2, 3), "missing"});
}

TEST_F(GgufParts, AreRefusedUnderOtherNames) {
  write();
  const fs::path renamed = folder_.path() / "renamed.gguf";
  fs::copy(path(1), renamed);
  expect_bad_input([&] { open_gguf(renamed); }, {"renamed.gguf", "one of 3 parts", "NAME-00001-of-00003"});
  const fs::path other_count = folder_.path() / test::part_name(1, 4);
  fs::copy(path(1), other_count);
  expect_bad_input([&] { open_gguf(other_count); }, {"00004", "one of 3 parts", "NAME-00001-of-00003"});
}

TEST_F(GgufParts, AreRefusedInTheWrongOrder) {
  std::swap(parts_[1], parts_[2]);
  write();
  expect_refused({test::part_name(2, 3), "part 3 by its metadata", "part 2 by its name"});
  std::swap(parts_[1], parts_[2]);
  std::swap(parts_[0], parts_[1]);
  write();
  expect_refused({test::part_name(1, 3), "part 2 by its metadata", "part 1 by its name"});
  parts_[0].number = 7;
  write();
  expect_refused({test::part_name(1, 3), "part 7 (from 0)"});
}

TEST_F(GgufParts, AreRefusedWhenTheirCountsDiffer) {
  parts_[1].count = 5;
  write();
  expect_refused({test::part_name(2, 3), "one of 5 parts", "one of 3"});
}

TEST_F(GgufParts, AreRefusedWhenTheirTotalsDiffer) {
  parts_[2].all_tensors += 1;
  write();
  expect_refused({test::part_name(3, 3), "split.tensors.count", "different models"});
}

TEST_F(GgufParts, AreRefusedWhenTheTotalIsWrong) {
  for (SplitPart& part : parts_) part.all_tensors += 1;
  write();
  const std::string tensors = std::to_string(whole_.tensors.size());
  expect_refused({test::part_name(1, 3), tensors + " tensors", "split.tensors.count"});
}

TEST_F(GgufParts, AreRefusedWhenATensorIsThereTwice) {
  parts_[2].tensors.back() = parts_[0].tensors.front();
  write();
  expect_refused({test::part_name(3, 3), parts_[0].tensors.front(), "too"});
}

TEST_F(GgufParts, AreRefusedWhenOneIsOfAnotherModel) {
  test::TinyModelOptions options;
  options.rope_theta = 5e5f;
  const fs::path other_path = folder_.path() / "other.gguf";
  test::write_tiny_gguf(other_path, options);
  const GgufFile other = open_gguf(other_path);
  write();
  parts_[1].metadata = true;  // as some tools repeat it
  write(path(2), test::part_bytes(other, parts_[1]));
  expect_refused({test::part_name(2, 3), "llama.rope.freq_base", "different models"});
  write(path(2), test::part_bytes(whole_, parts_[1]));
  EXPECT_EQ(open_gguf(path(1)).tensors.size(), whole_.tensors.size());
}

TEST_F(GgufParts, AreRefusedWhenOneIsDamaged) {
  write();
  const std::string bytes = test::part_bytes(whole_, parts_[2]);
  write(path(3), bytes.substr(0, bytes.size() - 64));
  expect_refused({test::part_name(3, 3), "truncated or damaged"});
  write(path(3), "no model");
  expect_refused({test::part_name(3, 3), "not a GGUF file"});
}

TEST_F(GgufParts, AreRefusedInAnAbsurdNumber) {
  for (const uint32_t count : {100000u, 0x7fffffffu}) {
    test::GgufBuilder builder;
    builder.number("split.count", count).number("split.no", 0u);
    write(path(1), builder.build());
    expect_refused({test::part_name(1, 3), "split.count", std::to_string(count), "99999"});
  }
  test::GgufBuilder negative;
  negative.raw("split.count", test::bytes_of<uint32_t>(5) + test::bytes_of<int32_t>(-3));
  write(path(1), negative.build());
  expect_refused({"split.count", "-3"});
  test::GgufBuilder many;
  many.number("split.count", 60000u).number("split.no", 0u);
  const fs::path first = folder_.path() / test::part_name(1, 60000);
  write(first, many.build());
  expect_bad_input([&] { open_gguf(first); }, {"one of 60000 parts", "00002-of-60000", "missing"});
}

TEST_F(GgufParts, AreRefusedWithoutTheirMetadata) {
  test::GgufBuilder builder;
  builder.number("split.count", 3u);
  write();
  write(path(2), builder.build());
  expect_refused({test::part_name(2, 3), "split.no"});
}

TEST_F(GgufParts, OfACountOfOneAreAWholeFile) {
  std::vector<SplitPart> single = test::split_parts(whole_, whole_.tensors.size());
  for (const uint16_t count : {uint16_t{0}, uint16_t{1}}) {
    single[0].count = count;
    const fs::path file = folder_.path() / "single.gguf";
    write(file, test::part_bytes(whole_, single[0]));
    expect_same_tensors(open_checkpoint(file), open_checkpoint(whole_path_));
  }
}

TEST(GgufPartNames, AreTakenApart) {
  const auto name = parse_gguf_part_name("a-model-00002-of-00003.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->stem, "a-model");
  EXPECT_EQ(name->number, 2);
  EXPECT_EQ(name->count, 3);
  EXPECT_EQ(name->text(), "a-model-00002-of-00003.gguf");
  for (const char* other : {"a.gguf", "-0001-of-00003.gguf", "a-00004-of-00003.gguf", "a-00000-of-00003.gguf",
                            "a-0+001-of-00003.gguf", "a-00001-of-00003.vbt", "a-00001_of-00003.gguf"}) {
    EXPECT_FALSE(parse_gguf_part_name(other)) << other;
  }
}

}  // namespace
}  // namespace verbatim
