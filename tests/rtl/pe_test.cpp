#include <gtest/gtest.h>

#include "DecoderNetlist.h"
#include "DecoderNetlistWithBug.h"
#include "Pe.h"
#include "PeNetlist.h"
#include "PeNetlistWithBug.h"
#include "PeWithBugInItsAccumulators.h"
#include "PeWithBugs.h"
#include "rtl/comparisons.h"

namespace verbatim::accelerator {
namespace {

TEST(PeInRtl, MultipliesAllActivationsWithAllCodesInEveryLane) {
  EXPECT_EQ(test::draft_product_differences<Pe>(1), 0);
  EXPECT_GT(test::draft_product_differences<PeWithBugs>(17), 0);
}

TEST(PeInRtl, MultipliesTenMillionRandomPairsInFullMode) {
  EXPECT_EQ(test::full_product_differences<Pe>(10'000'000), 0);
  EXPECT_GT(test::full_product_differences<PeWithBugs>(100'000), 0);
}

TEST(PeInRtl, AccumulatesInBothModes) {
  EXPECT_EQ(test::accumulated_differences<Pe>(20'000), 0);
  EXPECT_GT(test::accumulated_differences<PeWithBugs>(2'000), 0);
  // A bug in the accumulators alone: no product is wrong.
  EXPECT_EQ(test::draft_product_differences<PeWithBugInItsAccumulators>(17), 0);
  EXPECT_EQ(test::full_product_differences<PeWithBugInItsAccumulators>(100'000), 0);
  EXPECT_GT(test::accumulated_differences<PeWithBugInItsAccumulators>(2'000), 0);
}

TEST(NetlistOfTheDecoder, GivesWhatTheModelGives) {
  EXPECT_EQ(test::decoder_differences<DecoderNetlist>(), 0);
  EXPECT_EQ(test::stored_weight_differences<DecoderNetlist>(), 0);
  EXPECT_GT(test::decoder_differences<DecoderNetlistWithBug>() +
                test::stored_weight_differences<DecoderNetlistWithBug>(),
            0);
}

TEST(NetlistOfThePe, GivesWhatTheModelGives) {
  EXPECT_EQ(test::draft_product_differences<PeNetlist>(23), 0);
  EXPECT_EQ(test::full_product_differences<PeNetlist>(100'000), 0);
  EXPECT_EQ(test::accumulated_differences<PeNetlist>(2'000), 0);
  EXPECT_GT(test::draft_product_differences<PeNetlistWithBug>(1023) +
                test::full_product_differences<PeNetlistWithBug>(1'000) +
                test::accumulated_differences<PeNetlistWithBug>(20),
            0);
}

}  // namespace
}  // namespace verbatim::accelerator
