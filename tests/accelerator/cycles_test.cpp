#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "accelerator/cycles/engine.h"
#include "accelerator/cycles/pass.h"
#include "accelerator/cycles/product.h"
#include "accelerator/machines.h"
#include "support/test_data.h"
#include "verbatim/error.h"

namespace verbatim::accelerator {
namespace {

constexpr double kSecond = 1e12;

struct Result {
  int64_t end = 0;
  Totals totals;
};

Result run(const Hardware& hardware, const Dram& dram, const Product& product, bool skip = true) {
  MachineClock clock(hardware, service_of(dram), skip);
  for (const Segment& segment : cut(hardware, product)) clock.run(segment);
  return {clock.end(), clock.totals()};
}

Product random_product(std::mt19937_64& random, const Hardware& hardware) {
  Product product;
  product.rows = test::any_of<int64_t>(random, {1, 1, 2, 7, 17});
  product.outputs = 1 + static_cast<int64_t>(random() % 3000);
  product.inputs = 1 + static_cast<int64_t>(random() % 3000);
  product.mode = random() % 2 == 0 ? Mode::kFull : Mode::kDraft;
  product.weight_bits = hardware.weight_bits(product.mode);
  product.sfu_passes = static_cast<int64_t>(random() % 4);
  return product;
}

/// The least time in ps: what the memory has to transfer at its peak, and what the array has to multiply.
double roofline(const Hardware& hardware, const Dram& dram, const Product& product, const Totals& totals,
                double efficiency = 1) {
  const double memory = static_cast<double>(totals.bytes_read + totals.bytes_written) * kSecond /
                        (dram.peak_bytes_per_second() * efficiency);
  const double array = static_cast<double>(product.rows * product.outputs * product.inputs) /
                       static_cast<double>(peak_macs(hardware, product.mode)) *
                       static_cast<double>(hardware.cycle_ps());
  return std::max(memory, array);
}

/// What a refresh costs.
int64_t one_refresh(const Dram& dram) {
  return service_of(dram).outage_ps;
}

TEST(RandomMachines, KeepTheRooflineAndGainByBandwidth) {
  constexpr int kConfigurations = 10'000;
  std::mt19937_64 random(1);
  for (int i = 0; i < kConfigurations; ++i) {
    const Hardware hardware = test::random_hardware(random);
    Dram dram = test::random_dram(random);
    const Product product = random_product(random, hardware);
    const Result result = run(hardware, dram, product);
    ASSERT_GE(static_cast<double>(result.end), roofline(hardware, dram, product, result.totals)) << i;
    ASSERT_EQ(result.totals.macs, product.rows * product.outputs * product.inputs) << i;
    dram.channels += 1 + static_cast<int64_t>(random() % 8);
    const Result faster = run(hardware, dram, product);
    ASSERT_LE(faster.end, result.end + one_refresh(dram)) << i;
  }
}

TEST(RandomMachines, SkipNothingButTheWork) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 300; ++i) {
    const Hardware hardware = test::random_hardware(random);
    const Dram dram = test::random_dram(random);
    Product product = random_product(random, hardware);
    product.outputs *= 20;
    const Result skipped = run(hardware, dram, product, true);
    const Result whole = run(hardware, dram, product, false);
    ASSERT_EQ(skipped.end, whole.end) << i;
    ASSERT_EQ(skipped.totals, whole.totals) << i;
  }
}

TEST(Columns, BeginWhenAPartOfTheOutputBufferIsFree) {
  Hardware hardware = load_hardware("speq");
  hardware.pipeline_cycles = 10;
  hardware.sfu_latency_cycles = 30;
  const Block first{.array_cycles = 100};
  const Block second{.array_cycles = 50, .sfu_cycles = 1000, .begins_sums = false};
  const auto cycles_of_columns = [&](int64_t columns) {
    MachineClock clock(hardware, service_of(load_dram("hbm2")));
    clock.run({.blocks = {first, second}, .times = columns});
    return clock.end() / hardware.cycle_ps();
  };
  // The SFU is busy from the first column's end; with two halves the array is always ahead of it.
  EXPECT_EQ(cycles_of_columns(4), 150 + 10 + 4 * 1030);
  // With one the array waits for it, at a column's first block.
  hardware.double_buffered = false;
  EXPECT_EQ(cycles_of_columns(4), 4 * (150 + 10 + 1030));
}

TEST(LargeLayers, AreWithinFivePercentOfTheRoofline) {
  const Hardware hardware = load_hardware("speq");
  for (const std::string& name : dram_names()) {
    const Dram dram = load_dram(name);
    const double efficiency = service_of(dram).efficiency();
    for (const Shape& shape : paper_shapes()) {
      for (const auto& [outputs, inputs] : {std::pair{2 * shape.intermediate, shape.hidden},
                                            {shape.hidden, shape.intermediate},
                                            {shape.vocabulary, shape.hidden}}) {
        for (const int64_t rows : {1, 7, 17}) {
          for (const Mode mode : {Mode::kFull, Mode::kDraft}) {
            const Product product{.rows = rows,
                                  .outputs = outputs,
                                  .inputs = inputs,
                                  .mode = mode,
                                  .weight_bits = hardware.weight_bits(mode),
                                  .sfu_passes = 1};
            const Result result = run(hardware, dram, product);
            const double least = roofline(hardware, dram, product, result.totals, efficiency);
            EXPECT_LE(static_cast<double>(result.end), 1.05 * least)
                << name << ", " << outputs << " x " << inputs << ", " << rows << " rows, mode "
                << static_cast<int>(mode);
          }
        }
      }
    }
  }
}

TEST(Passes, AreTheSameSkippedAndWhole) {
  Shape shape = paper_shapes()[3];
  shape.layers = 6;
  shape.vocabulary = 20'000;
  const Hardware hardware = load_hardware("speq");
  const DramService service = service_of(load_dram("lpddr5-6400"));
  PassRunner skipping(hardware, service, shape, true);
  PassRunner whole(hardware, service, shape, false);
  for (int64_t i = 0; i < 12; ++i) {
    const Pass pass{
        .mode = i % 3 == 2 ? Mode::kFull : Mode::kDraft, .rows = i % 3 == 2 ? 4 : 1, .context = 300 + i};
    ASSERT_EQ(skipping.run(pass), whole.run(pass)) << i;
  }
  EXPECT_EQ(skipping.totals(), whole.totals());
}

TEST(Passes, MultiplyAndReadWhatTheModelHas) {
  const Shape shape = paper_shapes()[2];
  const Hardware hardware = load_hardware("fp16");
  PassRunner runner(hardware, service_of(load_dram("hbm2")), shape);
  runner.run({.mode = Mode::kFull, .rows = 3, .context = 1000});
  const int64_t attention = 2 * shape.layers * 1003 * shape.query_size();
  EXPECT_EQ(runner.totals().macs, 3 * (shape.weights_of_row() + attention));
  EXPECT_EQ(runner.totals().weight_bytes, 2 * shape.weights_of_row());
  EXPECT_EQ(runner.totals().kv_bytes, 2 * 2 * shape.layers * 1003 * shape.kv_size());
  EXPECT_EQ(runner.totals().bytes_written, 2 * 2 * shape.layers * 3 * shape.kv_size());
  EXPECT_EQ(runner.totals().bytes_read, runner.totals().weight_bytes + runner.totals().kv_bytes);
}

TEST(Passes, TakeLongerWithAContextAndWithRows) {
  Shape shape = paper_shapes()[0];
  shape.layers = 2;
  const auto time = [&](int64_t rows, int64_t context) {
    const Hardware hardware = load_hardware("speq");
    PassRunner runner(hardware, service_of(load_dram("hbm2")), shape);
    return runner.run({.mode = Mode::kFull, .rows = rows, .context = context});
  };
  EXPECT_LT(time(1, 100), time(1, 4000));
  EXPECT_LT(time(1, 100), time(17, 100));
}

TEST(Array, WorksAsFastAsThePaperSays) {
  const Hardware speq = load_hardware("speq");
  EXPECT_EQ(peak_macs(speq, Mode::kFull), 1024);
  EXPECT_EQ(peak_macs(speq, Mode::kDraft), 3072);
  // A group of 128 inputs of 8 outputs in a cycle, and of 24 in quantize mode.
  EXPECT_EQ(array_cycles(speq, Mode::kFull, 1, 8, 128), 1);
  EXPECT_EQ(array_cycles(speq, Mode::kDraft, 1, 24, 128), 1);
  EXPECT_EQ(array_cycles(speq, Mode::kFull, 5, 4096, 4096), 5 * 4096 * 4096 / 1024);
}

TEST(Array, WorksAsFastUnderEveryMappingWhereTheSizesFit) {
  for (const auto lie : {Hardware::GroupsLie::kAcrossPes, Hardware::GroupsLie::kWithinPe}) {
    for (const auto share :
         {Hardware::TilesShare::kOutputs, Hardware::TilesShare::kInputs, Hardware::TilesShare::kRows}) {
      Hardware hardware = load_hardware("speq");
      hardware.groups_lie = lie;
      hardware.tiles_share = share;
      EXPECT_EQ(array_cycles(hardware, Mode::kFull, 8, 4096, 4096), 8 * 4096 * 4096 / 1024);
      EXPECT_EQ(array_cycles(hardware, Mode::kDraft, 8, 3072, 4096), 8 * 4096);
    }
  }
}

TEST(Blocks, BeyondTheBuffersAreRefused) {
  Hardware hardware = load_hardware("speq");
  hardware.block_outputs = 64;
  hardware.block_inputs = 4096;
  const Product product{.rows = 1, .outputs = 4096, .inputs = 4096, .weight_bits = 16};
  EXPECT_THROW(cut(hardware, product), Error);
  hardware.block_outputs = 32;
  EXPECT_EQ(cut(hardware, product).front().blocks.front().read_bytes, 262144);
  Product rows = product;
  rows.rows = 3000;  // sums of 384,000 bytes
  EXPECT_THROW(cut(hardware, rows), Error);
  hardware.block_outputs = 0;
  hardware.block_inputs = 0;
  EXPECT_NO_THROW(cut(hardware, rows));
  hardware.weight_buffer = 2;
  EXPECT_THROW(cut(hardware, product), Error);
}

TEST(Exceptions, CostBytesAndNoTimeWhileThereAreFew) {
  Hardware hardware = load_hardware("speq");
  const Dram dram = load_dram("lpddr5-6400");
  const Product product{.rows = 7, .outputs = 4096, .inputs = 4096, .weight_bits = 16};
  const Result without = run(hardware, dram, product);
  hardware.exceptions = 1.0 / 1024;
  const Result few = run(hardware, dram, product);
  EXPECT_NEAR(static_cast<double>(few.totals.bytes_read - without.totals.bytes_read),
              4096.0 * 4096 / 1024 * 3, 1000);
  EXPECT_EQ(few.totals.array_cycles, without.totals.array_cycles);
  hardware.exceptions = 0.1;
  EXPECT_GT(run(hardware, dram, product).totals.array_cycles, without.totals.array_cycles);
}

}  // namespace
}  // namespace verbatim::accelerator
