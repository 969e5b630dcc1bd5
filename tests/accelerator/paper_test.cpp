#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "accelerator/paper/comparison.h"
#include "accelerator/paper/equations.h"
#include "accelerator/paper/sensitivity.h"
#include "accelerator/report/page.h"
#include "verbatim/error.h"

namespace verbatim::accelerator {
namespace {

using ::testing::HasSubstr;

/// The paper's models with a layer each, which takes as long per layer.
std::vector<Shape> short_models() {
  std::vector<Shape> shapes = paper_shapes();
  for (Shape& shape : shapes) shape.layers = 1;
  return shapes;
}

const Comparison& short_comparison() {
  static const Comparison comparison =
      compare(load_hardware("speq"), load_dram("lpddr5-6400"), 64, short_models());
  return comparison;
}

TEST(PaperClaims, FollowFromEquationTwoWithOneFittedRatio) {
  int near = 0;
  double mean = 0;
  double acceptance = 0;
  for (const Claim& claim : kClaims) {
    const double fitted = speedup(claim.draft_length, claim.acceptance, kFittedDraftTime, 1);
    if (std::abs(fitted - claim.speedup) <= 0.0101) ++near;
    EXPECT_NEAR(fitted, claim.speedup, 0.025);
    mean += claim.speedup / 15;
    acceptance += claim.acceptance / 15;
  }
  EXPECT_EQ(near, 14);
  // V-B says 2.08 and .977, abstract and introduction 2.07 and .976.
  EXPECT_NEAR(mean, 2.07, 0.005);
  EXPECT_NEAR(acceptance, 0.977, 0.0005);
}

TEST(PaperClaims, AddUpInTableFour) {
  double area = 0;
  double draft = 0;
  double full = 0;
  for (const ClaimedPart& part : kClaimedParts) {
    area += part.area;
    draft += part.draft_power;
    full += part.full_power;
  }
  EXPECT_NEAR(area, 100, 0.01);
  EXPECT_NEAR(draft, 100, 0.01);
  EXPECT_NEAR(full, 100, 0.01);
  EXPECT_NEAR(kClaimedParts[1].area / kClaimedParts[0].area, 0.089, 5e-4);
}

TEST(Comparison, HasEveryClaim) {
  const Comparison& comparison = short_comparison();
  ASSERT_EQ(comparison.cells.size(), kClaims.size());
  for (const ComparedCell& cell : comparison.cells) {
    // Steps and passes give the time of decoding, up to how whole numbers fall.
    EXPECT_NEAR(cell.simulated,
                speedup(cell.claim.draft_length, cell.claim.acceptance, cell.draft_time, cell.verify_time),
                0.06 * cell.simulated);
    EXPECT_GT(cell.draft_time, 4.125 / 16 - 0.01);
    EXPECT_LT(cell.draft_time, 1.0 / 3);
    EXPECT_NEAR(cell.verify_time, 1, 0.03);
  }
  ASSERT_EQ(comparison.gains.size(), 5u);
  EXPECT_GT(comparison.gains[0].speedup, comparison.gains[1].speedup);
  EXPECT_GT(comparison.gains[1].speedup, comparison.gains[3].speedup);
  EXPECT_EQ(comparison.map.size(), 6u * 7u);
}

TEST(Comparison, FindsTableThreeWhereTilesShareRowsAndTheArrayIsTheLimit) {
  // A row keeps one tile of eight busy then: seven take no longer, and a draft takes a third.
  for (const MapPoint& point : short_comparison().map) {
    if (point.gigabytes_per_second < 1000) continue;
    const bool rows = point.mapping.ends_with("rows");
    if (rows) {
      EXPECT_NEAR(point.draft_time, 1.0 / 3, 0.04) << point.mapping;
      EXPECT_NEAR(point.verify_time, 1, 0.1) << point.mapping;
    } else {
      EXPECT_GT(point.verify_time, 4) << point.mapping;
    }
  }
  EXPECT_THAT(short_comparison().nearest.mapping, HasSubstr("tiles share rows"));
}

TEST(Comparison, SaysWhatIsFittedAndWhatIsNotKnown) {
  const std::string text = text_of(short_comparison());
  EXPECT_THAT(text, HasSubstr("nothing is fitted but the column that says so"));
  EXPECT_THAT(text, HasSubstr("Table IV, the paper's alone"));
  EXPECT_THAT(text, HasSubstr("llama2-13b   GSM8K        6.57  0.991    2.19"));
  Dram unknown = load_dram("lpddr4-3200");
  unknown.pj_per_bit = std::nullopt;
  const Comparison other = compare(load_hardware("speq"), unknown, 4, {short_models()[3]});
  EXPECT_FALSE(other.gains[0].dram_energy.has_value());
  EXPECT_THAT(text_of(other), HasSubstr("not known"));
}

TEST(Sensitivities, ChangeOneAssumptionAtATime) {
  const std::vector<Sensitivity> all =
      sensitivities(load_hardware("speq"), load_dram("lpddr5-6400"), 64, short_models()[1]);
  ASSERT_GT(all.size(), 15u);
  EXPECT_EQ(all.front().assumption, "nothing");
  const auto of = [&](const std::string& name) {
    for (const Sensitivity& one : all) {
      if (one.assumption == name) return one;
    }
    ADD_FAILURE() << name;
    return Sensitivity{};
  };
  EXPECT_LT(of("a draft dropped in each step").speedup, all.front().speedup);
  EXPECT_GT(of("storage verbatim, BF16").speedup, all.front().speedup);
  EXPECT_NEAR(of("storage verbatim, BF16").verify_time, 13.03125 / 16, 0.03);
  EXPECT_GT(of("prompts of 4096 tokens").draft_time, all.front().draft_time);
  EXPECT_THAT(text_of(all), HasSubstr("single buffers"));
  EXPECT_THAT(text_of(all), HasSubstr("Sensitivity, llama2-7b with"));
  const std::vector<Sensitivity> other =
      sensitivities(load_hardware("speq"), load_dram("hbm2"), 4, short_models()[3]);
  EXPECT_THAT(text_of(other), HasSubstr("Sensitivity, llama3.2-3b with"));
}

/// What measured drafts are on a short model: kept best in the middle.
Surface short_surface() {
  const ThresholdMeasurement measurement = parse_thresholds(
      R"({"conditions": "Made up.", "values": [
      {"length": 4, "threshold": 0, "traces": [{"prompt_tokens": 10, "steps": [[4, 1, 4], [4, 1, 4]]}]},
      {"length": 4, "threshold": 0.5, "traces": [{"prompt_tokens": 10, "steps": [[2, 2, 2], [2, 2, 2]]},
                                                 {"prompt_tokens": 20, "steps": [[2, 2, 2]]}]},
      {"length": 8, "threshold": 0.5, "traces": [{"prompt_tokens": 10, "steps": [[0, 0, 0], [0, 0, 0]]}]}]})",
      "test");
  return surface_of(load_hardware("speq"), load_dram("lpddr5-6400"), short_models()[2], measurement);
}

PaperPart short_paper_part() {
  return {short_comparison(), {short_surface()}, {{.model = "short", .assumption = "nothing", .speedup = 2}}};
}

TEST(FigureNine, SimulatesWhatWasMeasured) {
  const Surface surface = short_surface();
  ASSERT_EQ(surface.points.size(), 3u);
  EXPECT_EQ(surface.conditions, "Made up.");
  EXPECT_DOUBLE_EQ(surface.points[0].acceptance, 0.25);
  EXPECT_DOUBLE_EQ(surface.points[1].tokens_per_step, 3);
  EXPECT_LT(surface.points[0].speedup, surface.points[1].speedup);
  EXPECT_DOUBLE_EQ(surface.points[2].speedup, 1);  // nothing drafted: FP16
  EXPECT_GT(surface.points[1].speedup, 1.5);
  EXPECT_THAT(text_of(surface), HasSubstr("      0.0"));
  EXPECT_THAT(text_of(surface), HasSubstr("-\n"));
}

TEST(FigureNine, HasAMeasurementForThePapersAxes) {
  const std::vector<MeasuredDrafting>& drafting = measured_thresholds().drafting;
  const auto has = [&](int64_t length, double threshold) {
    return std::any_of(drafting.begin(), drafting.end(), [&](const MeasuredDrafting& one) {
      return one.length == length && one.threshold == threshold;
    });
  };
  for (const int64_t length : {4, 8, 12, 16, 20}) {
    for (int tenths = 0; tenths <= 8; ++tenths)
      EXPECT_TRUE(has(length, tenths / 10.0)) << length << " " << tenths;
  }
  for (const MeasuredDrafting& one : drafting) {
    for (const Steps& steps : one.traces) {
      EXPECT_GT(steps.accepted(), 0);
      for (const Step& step : steps.steps) EXPECT_LE(step.drafted, one.length);
    }
  }
}

TEST(FigureNine, RefusesMeasurementsThatAreNone) {
  const auto refused = [](const std::string& json) {
    try {
      parse_thresholds(json, "file");
      return std::string("nothing");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(refused("[]"), HasSubstr("file: has no values"));
  EXPECT_THAT(refused(R"({"values": [3]})"), HasSubstr("is no object"));
  EXPECT_THAT(refused(R"({"values": [{"length": 4, "threshold": 2}]})"),
              HasSubstr("\"threshold\" must be from 0 to 1"));
  const auto with = [&](const std::string& traces) {
    return refused(R"({"values": [{"length": 4, "threshold": 0, "traces": )" + traces + "}]}");
  };
  EXPECT_THAT(with("[]"), HasSubstr("\"traces\" must be a list"));
  EXPECT_THAT(with("[3]"), HasSubstr("a trace has"));
  EXPECT_THAT(with(R"([{"prompt_tokens": 1, "steps": []}])"), HasSubstr("no steps"));
  EXPECT_THAT(with(R"([{"prompt_tokens": 1, "steps": [[1, 1]]}])"), HasSubstr("three counts"));
  EXPECT_THAT(with(R"([{"prompt_tokens": 1, "steps": [[1, -1, 1]]}])"), HasSubstr("a whole number from 0"));
  EXPECT_THAT(with(R"([{"prompt_tokens": 1, "steps": [[1, 2, 1]]}])"), HasSubstr("accepted 2 of 1"));
}

TEST(Page, ShowsThePaperAlone) {
  const std::string page = page_of(short_paper_part());
  for (const char* const part :
       {"<h1>A model of SPEQ's", "figure 9", "Made up.", "table III could come from"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_EQ(page.find("Roofline"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(Page, ShowsTheSimulationAndThePaper) {
  Simulation simulation;
  simulation.model = "a <model>";
  simulation.decoding.machine = "speq";
  simulation.decoding.tokens = 3;
  simulation.decoding.seconds = 1;
  simulation.decoding.dram_joules = 2;
  simulation.baseline = simulation.decoding;
  simulation.baseline.chip_joules = std::nullopt;
  const std::string page =
      page_of(load_hardware("speq"), load_dram("hbm2"), short_models()[0], simulation, short_paper_part());
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  for (const char* const part :
       {"a &lt;model&gt; on a model of SPEQ", "figure 7", "figure 8", "figure 9", "Roofline",
        "Where table III could come from", "not known", "Table IV is the paper's alone", "fitted"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_EQ(page.find("<model>"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
  // Nothing is loaded from elsewhere.
  for (const char* const part : {"src=", "href=", "@import", "url("}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace verbatim::accelerator
