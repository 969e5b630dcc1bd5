#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "accelerator/dram/dram.h"
#include "accelerator/parameters/built_in.h"
#include "accelerator/parameters/hardware.h"
#include "verbatim/error.h"

namespace verbatim::accelerator {
namespace {

using ::testing::HasSubstr;

std::string text_of(const std::string& name) {
  for (const BuiltIn& one : built_in_hardware()) {
    if (one.name == name) return std::string(one.toml);
  }
  ADD_FAILURE() << name;
  return {};
}

/// The text of a built-in file with the value of a key replaced.
std::string with(const std::string& name, const std::string& key, const std::string& value) {
  std::string text = text_of(name);
  const size_t at = text.find("\n" + key + " =");
  EXPECT_NE(at, std::string::npos) << key;
  const size_t end = text.find('\n', at + 1);
  return text.replace(at, end - at, value.empty() ? "" : "\n" + key + " = " + value);
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadInput);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "nothing was refused";
}
std::string hardware_refusal(const std::string& key, const std::string& value) {
  return refusal([&] { parse_hardware(with("speq", key, value), "speq.toml"); });
}
std::string dram_refusal(const std::string& key, const std::string& value) {
  return refusal([&] { parse_dram(with("dram-lpddr5-6400", key, value), "m.toml"); });
}

TEST(Machines, AreThoseOfThePaperAndItsBaselines) {
  EXPECT_THAT(hardware_names(), ::testing::UnorderedElementsAre("fp16", "olive-4", "olive-8", "speq",
                                                                "speq-verbatim", "tender-4", "tender-8"));
  const Hardware speq = load_hardware("speq");
  EXPECT_EQ(speq.tiles * speq.pes, 32 * 32);
  EXPECT_EQ(speq.clock_mhz, 500);
  EXPECT_EQ(speq.draft_weights, 3);
  EXPECT_EQ(speq.weight_buffer + speq.activation_buffer + speq.output_buffer, 3 * 512 * 1024);
  for (const std::string& name : hardware_names()) EXPECT_EQ(load_hardware(name).name, name);
}

TEST(Machines, RefuseValuesThatCannotBe) {
  EXPECT_THAT(hardware_refusal("tiles", "0"), HasSubstr("array.tiles must be from 1 to 4096, not 0"));
  EXPECT_THAT(hardware_refusal("pes", "-3"), HasSubstr("array.pes"));
  EXPECT_THAT(hardware_refusal("clock_mhz", "333"), HasSubstr("divide a million"));
  EXPECT_THAT(hardware_refusal("full_bits", "nan"), HasSubstr("storage.full_bits"));
  EXPECT_THAT(hardware_refusal("full_bits", "1e30"), HasSubstr("storage.full_bits"));
  EXPECT_THAT(hardware_refusal("exceptions", "1.5"), HasSubstr("storage.exceptions"));
  EXPECT_THAT(hardware_refusal("lanes", "\"many\""), HasSubstr("sfu.lanes must be a whole number"));
  EXPECT_THAT(hardware_refusal("lanes", ""), HasSubstr("sfu.lanes is missing"));
  EXPECT_THAT(hardware_refusal("double", "1"), HasSubstr("true or false"));
  EXPECT_THAT(hardware_refusal("groups_lie", "\"here\""), HasSubstr("across-pes, within-pe"));
  EXPECT_THAT(hardware_refusal("tiles", "8\ntyles = 8"), HasSubstr("unknown key array.tyles"));
  EXPECT_THAT(hardware_refusal("logits", "2\n[spare]"), HasSubstr("unknown key spare"));
  EXPECT_THAT(hardware_refusal("draft_weights", "0"), HasSubstr("array.draft_weights is 0"));
  EXPECT_THAT(hardware_refusal("name", "\"a\\u001b[2Jb\""),
              HasSubstr("name must be without control characters"));
  EXPECT_THAT(hardware_refusal("dram", "\"a\\u009bb\""),
              HasSubstr("dram must be without control characters"));
  EXPECT_THAT(hardware_refusal("tiles", "[["), HasSubstr("speq.toml: line"));
  EXPECT_THAT(refusal([] { load_hardware("speck"); }), HasSubstr("name one of fp16, "));
  EXPECT_THAT(refusal([] { load_hardware("/no/where.toml"); }), HasSubstr("does not exist"));
}

TEST(Machines, MayHaveAnEmptyTableThatIsKnown) {
  EXPECT_EQ(parse_hardware(text_of("speq") + "\n[block]\n", "m").block_outputs, 0);
}

TEST(Machines, RefuseABlockBeyondTheBuffer) {
  const std::string text = text_of("speq") + "\n[block]\noutputs = 64\ninputs = 4096\n";
  EXPECT_THAT(refusal([&] { parse_hardware(text, "m"); }), HasSubstr("takes 524288 bytes"));
  const std::string exceptions = with("speq", "exceptions", "1.0");
  EXPECT_THAT(refusal([&] { parse_hardware(exceptions + "\n[block]\noutputs = 64\ninputs = 2048\n", "m"); }),
              HasSubstr("takes 655360 bytes"));
}

TEST(Memories, RefuseImpossibleTimings) {
  EXPECT_THAT(dram_refusal("tRC", "48"), HasSubstr("tRC is at least tRAS + tRP, but 48 < 34 + 15"));
  EXPECT_THAT(dram_refusal("tRAS", "10"), HasSubstr("tRAS is at least tRCD"));
  EXPECT_THAT(dram_refusal("tRP_all", "14"), HasSubstr("tRP_all"));
  EXPECT_THAT(dram_refusal("tCCD_L", "1"), HasSubstr("tCCD_L"));
  EXPECT_THAT(dram_refusal("tRRD_L", "3"), HasSubstr("tRRD_L"));
  EXPECT_THAT(dram_refusal("tFAW", "3"), HasSubstr("tFAW"));
  EXPECT_THAT(dram_refusal("tREFI", "200"), HasSubstr("tREFI leaves time between refreshes"));
  EXPECT_THAT(dram_refusal("tREFI", "700"), HasSubstr("rows that are open"));
  EXPECT_THAT(dram_refusal("tRC", "2000"), HasSubstr("rows can be opened while others are read"));
  EXPECT_THAT(dram_refusal("row_bytes", "64"), HasSubstr("rows can be opened while others are read"));
  EXPECT_THAT(dram_refusal("burst_length", "12"), HasSubstr("a burst takes whole cycles"));
  EXPECT_THAT(dram_refusal("row_bytes", "2050"), HasSubstr("a row holds whole bursts"));
  EXPECT_THAT(dram_refusal("tRCD", "0"), HasSubstr("timing.tRCD must be from 1"));
  EXPECT_THAT(dram_refusal("channels", "0"), HasSubstr("organization.channels"));
  EXPECT_THAT(dram_refusal("supplies", "[1.2]"), HasSubstr("energy.supplies must be a list of pairs"));
  EXPECT_THAT(refusal([] { load_dram("ddr9"); }), HasSubstr("ddr4-3200, hbm2, lpddr4-3200, lpddr5-6400"));
}

TEST(Memories, HaveTheBandwidthOfTheirNames) {
  EXPECT_DOUBLE_EQ(load_dram("ddr4-3200").peak_bytes_per_second(), 25.6e9);
  EXPECT_DOUBLE_EQ(load_dram("lpddr4-3200").peak_bytes_per_second(), 25.6e9);
  EXPECT_DOUBLE_EQ(load_dram("lpddr5-6400").peak_bytes_per_second(), 51.2e9);
  EXPECT_DOUBLE_EQ(load_dram("hbm2").peak_bytes_per_second(), 256e9);
}

TEST(Memories, SayWhatTheirEnergyIsMadeOf) {
  EXPECT_NEAR(*load_dram("lpddr5-6400").pj_per_bit, (1.05 * 372 + 1.8 * 7.2 + 0.5 * 106) / 102.4, 1e-12);
  EXPECT_DOUBLE_EQ(*load_dram("hbm2").pj_per_bit, 3.92);
  EXPECT_DOUBLE_EQ(load_dram("lpddr4-3200").pj_per_bit.value(), 8.0);
}

}  // namespace
}  // namespace verbatim::accelerator
