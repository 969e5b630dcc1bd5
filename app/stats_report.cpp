#include "stats_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "describe_recipe.h"

namespace verbatim::app {

namespace {

using nlohmann::ordered_json;

/// The widest bar, in characters.
constexpr int kBar = 30;

double share(double part, double whole) {
  return whole > 0.0 ? part / whole : 0.0;
}

double share(int64_t part, int64_t whole) {
  return share(static_cast<double>(part), static_cast<double>(whole));
}

std::string bar(double fraction) {
  const auto filled = static_cast<size_t>(std::clamp(fraction, 0.0, 1.0) * kBar + 0.5);
  return std::string(filled, '#');
}

/// A table's line with a bar at its end; no spaces stay there when the bar is empty.
std::string with_bar(std::string line, double fraction) {
  line += "  " + bar(fraction);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string time_table(const Stats& stats) {
  // The first token comes from the prompt.
  const auto tokens = static_cast<double>(std::max<int64_t>(stats.generated_tokens - 1, 1));
  const auto line = [&](std::string_view what, double seconds) {
    const double part = share(seconds, stats.seconds_decode);
    return with_bar(fmt::format("  {:<9} {:9.4f} {:7.1f} % {:10.3f}", what, seconds, 100.0 * part,
                                1e3 * seconds / tokens),
                    part);
  };
  std::string table = fmt::format("  {:<9} {:>9} {:>9} {:>10}\n", "time", "seconds", "share", "ms/token");
  table += line("draft", stats.seconds_draft);
  table += line("verify", stats.seconds_verify);
  table += line("sampling", stats.seconds_sampling);
  table += line("planning", stats.seconds_planning);
  table += line("overhead", stats.seconds_overhead());
  table += fmt::format("  {:<9} {:9.4f} {:9} {:10.3f}\n", "all", stats.seconds_decode, "",
                       1e3 * stats.seconds_decode / tokens);
  return table;
}

std::string depth_table(const Stats& stats) {
  std::string table = fmt::format("  {:<9} {:>9} {:>9} {:>10}\n", "depth", "steps", "kept", "share");
  for (size_t depth = 0; depth < stats.depths.size(); ++depth) {
    const DepthStats& at = stats.depths[depth];
    const double kept = share(at.accepted, at.drafted);
    table += with_bar(
        fmt::format("  {:<9} {:>9} {:>9} {:8.1f} %", depth + 1, at.drafted, at.accepted, 100.0 * kept), kept);
  }
  return table;
}

std::string length_table(const Stats& stats) {
  int64_t all = 0;
  int64_t most = 0;
  for (const int64_t steps : stats.lengths) {
    all += steps;
    most = std::max(most, steps);
  }
  std::string table = fmt::format("  {:<9} {:>9} {:>20}\n", "kept", "steps", "share");
  for (size_t length = 0; length < stats.lengths.size(); ++length) {
    const int64_t steps = stats.lengths[length];
    table += with_bar(fmt::format("  {:<9} {:>9} {:18.1f} %", length, steps, 100.0 * share(steps, all)),
                      share(steps, most));
  }
  return table;
}

/// What the planner chose, and how well it knew the costs.
std::string plan_table(const Stats& stats) {
  std::string table = fmt::format("  {:<16} {:>9} {:>9}\n", "plan", "steps", "share");
  for (const PlanStats& plan : stats.plans) {
    const double part = share(plan.steps, stats.target_passes);
    table += with_bar(fmt::format("  {:<16} {:>9} {:7.1f} %", plan.name, plan.steps, 100.0 * part), part);
  }
  const auto of = [](double expected, double seconds) { return seconds > 0 ? expected / seconds : 1.0; };
  table += fmt::format("expected costs against those that came: draft {:.3f}, verify {:.3f}\n",
                       of(stats.diagnostics.expected_draft, stats.seconds_draft),
                       of(stats.diagnostics.expected_verify, stats.seconds_verify));
  table += fmt::format("measured table against the same passes: draft {:.3f}, verify {:.3f}\n",
                       of(stats.diagnostics.table_draft, stats.diagnostics.seconds_draft_passes),
                       of(stats.diagnostics.table_verify, stats.seconds_verify));
  table += fmt::format("planning took {:.3f} % of decoding\n", stats.planning_percent());
  return table;
}

std::string level_table(const Stats& stats) {
  std::string table = fmt::format("  {:<9} {:>9} {:>9} {:>10} {:>9} {:>9}\n", "level", "drafted", "kept",
                                  "share", "passes", "seconds");
  for (size_t i = 0; i < stats.levels.size(); ++i) {
    const LevelStats& level = stats.levels[i];
    table += fmt::format("  {:<9} {:>9} {:>9} {:8.1f} % {:>9} {:9.4f}  {}\n", i + 1, level.drafted,
                         level.accepted, 100.0 * share(level.accepted, level.drafted), level.passes,
                         level.seconds, level_words(level.level));
  }
  return table;
}

}  // namespace

void add_stats(ordered_json& object, const Stats& stats) {
  object["tokens_per_second"] = stats.tokens_per_second();
  object["drafted"] = stats.drafted;
  object["accepted"] = stats.accepted;
  object["acceptance_rate"] = stats.acceptance_rate();
  object["mean_accepted_length"] = stats.mean_accepted_length();
  object["target_passes"] = stats.target_passes;
  object["draft_passes"] = stats.draft_passes;
  object["structure_drafted"] = stats.structure_drafted;
  object["structure_accepted"] = stats.structure_accepted;
  object["fallbacks"] = stats.fallbacks;
  object["rollbacks"] = stats.rollbacks;
  object["seconds_draft"] = stats.seconds_draft;
  object["seconds_verify"] = stats.seconds_verify;
  object["seconds_sampling"] = stats.seconds_sampling;
  object["seconds_planning"] = stats.seconds_planning;
  object["seconds_overhead"] = stats.seconds_overhead();
  object["levels"] = ordered_json::array();
  for (const LevelStats& level : stats.levels) {
    object["levels"].push_back({{"drafts", level_words(level.level)},
                                {"drafted", level.drafted},
                                {"accepted", level.accepted},
                                {"passes", level.passes},
                                {"seconds", level.seconds}});
  }
  object["depths"] = ordered_json::array();
  for (const DepthStats& depth : stats.depths) {
    object["depths"].push_back({{"drafted", depth.drafted}, {"accepted", depth.accepted}});
  }
  object["lengths"] = stats.lengths;
  object["plans"] = ordered_json::array();
  for (const PlanStats& plan : stats.plans) {
    object["plans"].push_back({{"name", plan.name}, {"steps", plan.steps}});
  }
  add_planning(object, stats);
}

void add_planning(ordered_json& object, const Stats& stats) {
  object["expected_seconds_draft"] = stats.diagnostics.expected_draft;
  object["expected_seconds_verify"] = stats.diagnostics.expected_verify;
  object["table_seconds_draft"] = stats.diagnostics.table_draft;
  object["table_seconds_verify"] = stats.diagnostics.table_verify;
  object["seconds_draft_passes"] = stats.diagnostics.seconds_draft_passes;
  object["planning_percent"] = stats.planning_percent();
}

std::string stats_report(const Stats& stats, const Recipe& recipe) {
  if (stats.target_passes == 0) return "no steps of decoding, and so no statistics\n";
  std::string report =
      fmt::format("{} {} of decoding with {}: {:.2f} tokens per step", stats.target_passes,
                  stats.target_passes == 1 ? "step" : "steps", recipe.name, stats.mean_accepted_length());
  if (stats.drafted > 0) {
    const auto of_steps = [&](int64_t count) { return 100.0 * share(count, stats.target_passes); };
    report += fmt::format("\ndrafting ended unsure in {:.1f} % of them, and drafts were rejected in {:.1f} %",
                          of_steps(stats.fallbacks), of_steps(stats.rollbacks));
  }
  report += "\n\n" + time_table(stats);
  if (stats.structure_steps > 0) {
    report += fmt::format("\nthe structure drafted in {} steps: {} of {} tokens kept\n",
                          stats.structure_steps, stats.structure_accepted, stats.structure_drafted);
  }
  if (!stats.plans.empty()) report += "\n" + plan_table(stats);
  if (stats.drafted == 0) return report;
  report += "\nkept of what was drafted so deep\n" + depth_table(stats);
  report += "\ndrafts that a step kept\n" + length_table(stats);
  report += "\nlevels of drafting, each with the time of those below it\n" + level_table(stats);
  return report;
}

std::string summary(const Stats& stats, const Recipe& recipe) {
  std::string line =
      fmt::format("{} prompt tokens in {:.2f} s; {} tokens at {:.1f} tokens/s with {}", stats.prompt_tokens,
                  stats.seconds_prefill, stats.generated_tokens, stats.tokens_per_second(), recipe.name);
  if (stats.drafted > 0) {
    line += fmt::format(" ({:.0f} % of {} drafts accepted, {:.2f} tokens per pass)",
                        100.0 * stats.acceptance_rate(), stats.drafted, stats.mean_accepted_length());
  }
  return line + fmt::format("; stopped by {}", finish_reason_name(stats.finish));
}

}  // namespace verbatim::app
