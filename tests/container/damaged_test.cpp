// Containers that lie. Run under AddressSanitizer these tests show that nothing outside the file is read.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "checkpoint/bad_input.h"
#include "container/support.h"
#include "support/use_container.h"

namespace verbatim {
namespace {

using nlohmann::json;
using test::AlignedBytes;
using test::expect_bad_input;
using test::forge_preamble;
using test::use_container;

Preamble preamble_of(const std::string& file) {
  Preamble preamble;
  std::memcpy(&preamble, file.data(), sizeof(preamble));
  return preamble;
}

json header_of(const std::string& file) {
  return json::parse(file.substr(preamble_of(file).header_offset));
}

/// The file with another header, all checksums right.
std::string with_header(const std::string& file, const std::string& header) {
  const Preamble before = preamble_of(file);
  std::string changed = file.substr(0, before.header_offset) + header;
  Preamble preamble = before;
  preamble.header_bytes = header.size();
  std::memcpy(changed.data(), &preamble, sizeof(preamble));
  const AlignedBytes bytes(changed);
  forge_preamble(bytes.span());
  return {reinterpret_cast<const char*>(bytes.span().data()), changed.size()};
}

std::string with_header(const std::string& file, const json& header) {
  return with_header(file, header.dump());
}

void expect_refused(const std::string& file, std::initializer_list<std::string> parts) {
  const AlignedBytes bytes(file);
  expect_bad_input([&] { load_weights(parse_container(bytes.span(), "model.vbt"), {}); }, parts);
}

bool usable(const std::string& file, ThreadTeam& team) {
  const AlignedBytes bytes(file);
  return use_container(bytes.span(), team);
}

bool usable_when_forged(const std::string& file, ThreadTeam& team) {
  const AlignedBytes bytes(file);
  forge_preamble(bytes.span());
  return use_container(bytes.span(), team);
}

class DamagedContainer : public testing::Test {
 protected:
  ThreadTeam team_{1};
  std::string file_ = test::small_container({"full", "mxfp4"});
};

TEST_F(DamagedContainer, IsFineWithoutDamage) {
  EXPECT_TRUE(usable(file_, team_));
  EXPECT_TRUE(usable_when_forged(file_, team_));
  EXPECT_EQ(with_header(file_, header_of(file_)).size(), file_.size());
  EXPECT_TRUE(usable(with_header(file_, header_of(file_)), team_));
}

TEST_F(DamagedContainer, CutAnywhereIsRefused) {
  for (size_t size = 0; size < file_.size(); ++size) {
    const std::string cut = file_.substr(0, size);
    ASSERT_FALSE(usable(cut, team_)) << size;
    if (size % 7 == 0) {
      ASSERT_FALSE(usable_when_forged(cut, team_)) << size;
    }
  }
  expect_refused(file_ + '\0', {"model.vbt", "truncated or damaged"});
  expect_refused(file_.substr(0, 63), {"damaged"});
  expect_refused(file_.substr(0, 7), {"is no packed model"});
  expect_refused("", {"is no packed model"});
}

TEST_F(DamagedContainer, WithAFlippedBitInPreambleOrHeaderIsRefused) {
  const uint64_t header = preamble_of(file_).header_offset;
  for (size_t at = 0; at < file_.size(); at = at + 1 == kPreambleBytes ? header : at + 1) {
    std::string flipped = file_;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    ASSERT_FALSE(usable(flipped, team_)) << at;
  }
}

TEST_F(DamagedContainer, OfAnotherVersionIsRefused) {
  std::string changed = file_;
  changed[8] = 1;
  expect_refused(changed, {"model.vbt", "version 1", "reads version 2"});
}

/// A change of the header, and what the message says of it.
struct Lie {
  void (*tell)(json& header);
  std::string part;
};

TEST_F(DamagedContainer, WithALyingHeaderIsRefused) {
  const Lie lies[] = {
      {[](json& h) { h["matrices"][0]["stores"][0]["planes"][0]["offset"] = 0; }, "outside the room"},
      {[](json& h) { h["matrices"][0]["stores"][0]["planes"][0]["offset"] = 65; }, "not a multiple of 64"},
      {[](json& h) { h["matrices"][0]["stores"][0]["planes"][0]["offset"] = uint64_t{1} << 40; }, "outside"},
      {[](json& h) { h["matrices"][0]["stores"][0]["planes"][0]["offset"] = ~uint64_t{63}; }, "outside"},
      {[](json& h) { h["matrices"][0]["stores"][0]["planes"][0]["bytes"] = ~uint64_t{0}; }, "outside"},
      {[](json& h) { h["matrices"][0]["stores"][0]["planes"][0]["bytes"] = -1; }, "bytes"},
      {[](json& h) { h["matrices"][0]["stores"][0]["planes"][0]["bytes"] = 64; }, "are needed"},
      {[](json& h) { h["matrices"][0]["stores"][0]["planes"][0] = h["embedding"]["plane"]; }, "overlap"},
      {[](json& h) { h["matrices"][0]["stores"][0]["planes"].clear(); }, "lacks its plane 0"},
      {[](json& h) { h["matrices"][0]["stores"][0]["format"] = "bf17"; }, "bf17"},
      {[](json& h) { h["matrices"][0]["stores"][0]["format"] = "mxfp4"; }, "twice"},
      {[](json& h) { h["matrices"][0]["stores"][0]["format"] = "f32"; }, "are needed"},
      {[](json& h) { h["matrices"][0]["stores"][0]["element"] = "F64"; }, "F64"},
      {[](json& h) { h["matrices"][0]["stores"].clear(); }, "no format"},
      {[](json& h) { h["matrices"][0]["columns"] = 1 << 30; }, "where the model has"},
      {[](json& h) { h["matrices"][0]["k"] = 0; }, "where the model has"},
      {[](json& h) { h["matrices"][0]["name"] = "layers.0.down"; }, "layers.0.qkv is missing"},
      {[](json& h) { h["matrices"].erase(1); }, "4 matrices where the model has 5"},
      {[](json& h) {
         h["matrices"].push_back({{"name", "x"}, {"columns", 1}, {"k", 1}, {"stores", json::array()}});
       },
       "6 matrices"},
      {[](json& h) { h["matrices"] = nullptr; }, "matrices"},
      {[](json& h) { h["vectors"].erase(0); }, "vectors"},
      {[](json& h) { h["vectors"][0]["length"] = 31; }, "where the model has"},
      {[](json& h) { h["vectors"][0]["plane"]["bytes"] = 64; }, "where the model has"},
      {[](json& h) { h["vectors"][0]["name"] = "final_norm"; }, "is missing"},
      {[](json& h) { h["embedding"]["type"] = "F32"; }, "embedding"},
      {[](json& h) { h["embedding"]["type"] = "Q9"; }, "Q9"},
      {[](json& h) { h["config"]["layers"] = 1024; }, "matrices where the model has 4097"},
      {[](json& h) { h["config"]["layers"] = 1 << 30; }, "number of layers"},
      {[](json& h) { h["config"]["vocab_size"] = 25; }, "embedding"},
      {[](json& h) { h["config"]["intermediate_size"] = 64; }, "where the model has"},
      {[](json& h) { h["config"]["qkv_bias"] = true; }, "vectors"},
      {[](json& h) { h["config"].erase("context"); }, "context is missing"},
      {[](json& h) { h["tokenizer"]["kind"] = "sentencepiece"; }, "vocabulary"},
      {[](json& h) { h["tokenizer"]["kind"] = "magic"; }, "magic"},
      {[](json& h) { h["embedding"]["plane"]["checksum"] = "xyz"; }, "checksum"},
      {[](json& h) { h["warnings"] = {1}; }, "warning"},
  };
  for (const Lie& lie : lies) {
    json header = header_of(file_);
    lie.tell(header);
    SCOPED_TRACE(lie.part);
    expect_refused(with_header(file_, header), {"model.vbt", lie.part});
  }
  expect_refused(with_header(file_, std::string("{")), {"JSON"});
  expect_refused(with_header(file_, std::string("[]")), {"model.vbt"});
  expect_refused(with_header(file_, std::string(100000, '[')), {"deep"});
}

TEST_F(DamagedContainer, WithAMutatedHeaderNeverReadsOutsideTheFile) {
  const uint64_t header = preamble_of(file_).header_offset;
  std::mt19937 random(7);
  const auto number = [&](size_t below) {
    return std::uniform_int_distribution<size_t>(0, below - 1)(random);
  };
  int accepted = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string changed = file_;
    const size_t at = header + number(file_.size() - header);
    switch (number(3)) {
      case 0:
        changed[at] = static_cast<char>(number(256));
        break;
      case 1:
        changed[at] = static_cast<char>('0' + number(10));
        break;
      default:
        changed[at] = changed[header + number(file_.size() - header)];
    }
    accepted += usable_when_forged(changed, team_);
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 2000);
}

class DamagedPlanes : public testing::TestWithParam<const char*> {};

TEST_P(DamagedPlanes, NeverLeadOutsideThem) {
  const std::string file = test::small_container({GetParam()});
  ThreadTeam team(2);
  const uint64_t end = preamble_of(file).header_offset;
  ASSERT_TRUE(usable(file, team));
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    std::string changed = file;
    for (int i = 0; i < 1 << round % 6; ++i) {
      changed[kPreambleBytes + random() % (end - kPreambleBytes)] = static_cast<char>(random());
    }
    usable_when_forged(changed, team);  // either will do
  }
  std::string full(file);  // every index as large as it gets
  std::fill(full.begin() + kPreambleBytes, full.begin() + static_cast<int64_t>(end), '\xff');
  usable_when_forged(full, team);
}

INSTANTIATE_TEST_SUITE_P(All, DamagedPlanes,
                         testing::Values("bf16", "f32", "int8", "int4", "int4-asymmetric", "mxfp4", "bsfp",
                                         "mxbf16", "squeeze3", "squeeze4"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_F(DamagedContainer, WithAnyOtherFlippedBitIsFoundByVerifying) {
  AlignedBytes bytes(file_);
  const Container container = parse_container(bytes.span(), "model.vbt");
  std::vector<double> fractions;
  const auto note = [&](double fraction) {
    fractions.push_back(fraction);
    return true;
  };
  verify_container(container, note);
  ASSERT_FALSE(fractions.empty());
  EXPECT_LE(fractions.back(), 1.0);
  for (uint64_t at = kPreambleBytes; at < container.header_offset; at += 3) {
    bytes.span()[at] ^= std::byte{4};
    expect_bad_input([&] { verify_container(container, {}); }, {"model.vbt", "not as it was written"});
    bytes.span()[at] ^= std::byte{4};
  }
  verify_container(container, {});
}

}  // namespace
}  // namespace verbatim
