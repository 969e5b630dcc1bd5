#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/model_options.h"
#include "app/progress.h"
#include "app/text_io.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/processors.h"
#include "bench/bandwidth_sweep.h"
#include "bench/commands.h"
#include "bench/kernels_measurement.h"
#include "kernels/dispatch.h"

namespace verbatim::bench {

namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostWeights = int64_t{1} << 29;

struct Options {
  std::vector<std::string> formats;
  std::vector<std::string> readings;
  std::vector<int64_t> rows = {1, 8, 16};
  // A large matrix, and those of a Llama of 1.1 billion parameters: queries, keys and values; attention's
  // output; gate and up; down; head.
  std::vector<std::string> shapes = {"8192x8192",  "2560x2048", "2048x2048",
                                     "11264x2048", "2048x5632", "32000x2048"};
  int32_t threads = 0;
  double seconds = 1.0;
  bool quick = false;
  bool in_cache = false;
  bool json = false;
};

bool parse_number(std::string_view text, int64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number > 0;
}

BenchShape parse_shape(const std::string& text) {
  const size_t x = text.find('x');
  BenchShape shape;
  if (x == std::string::npos || !parse_number(std::string_view(text).substr(0, x), &shape.n) ||
      !parse_number(std::string_view(text).substr(x + 1), &shape.k)) {
    fail(ErrorKind::kUsage, "\"{}\" is no shape: give outputs x inputs, such as 8192x2048", text);
  }
  if (shape.n > kMostWeights / shape.k) {
    fail(ErrorKind::kUsage, "the shape {} is too large: at most {} weights", text, kMostWeights);
  }
  return shape;
}

bool chosen(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<BenchFormat> chosen_formats(const Options& options) {
  std::vector<std::string> formats;
  std::vector<std::string> readings;
  for (const BenchFormat& format : bench_formats()) {
    formats.push_back(format.name);
    for (const Reading reading : format.readings) {
      const std::string name(reading_name(reading));
      if (std::find(readings.begin(), readings.end(), name) == readings.end()) readings.push_back(name);
    }
  }
  app::check_names("format", options.formats, formats);
  app::check_names("reading", options.readings, readings);
  std::vector<BenchFormat> result;
  for (BenchFormat format : bench_formats()) {
    if (!chosen(options.formats, format.name)) continue;
    std::erase_if(format.readings, [&](Reading r) { return !chosen(options.readings, reading_name(r)); });
    if (!format.readings.empty()) result.push_back(std::move(format));
  }
  if (result.empty()) {
    fail(ErrorKind::kUsage, "none of the formats {} has a reading {}", fmt::join(options.formats, ", "),
         fmt::join(options.readings, ", "));
  }
  return result;
}

KernelBenchPlan make_plan(const Options& options) {
  KernelBenchPlan plan;
  for (const std::string& shape : options.shapes) plan.shapes.push_back(parse_shape(shape));
  plan.formats = chosen_formats(options);
  plan.rows = options.rows;
  plan.threads = options.threads > 0 ? options.threads : hardware_threads();
  plan.seconds = options.seconds;
  plan.working_set = default_working_set();
  plan.in_cache = options.in_cache;
  if (options.quick) {
    plan.seconds = 0;
    plan.min_rounds = 3;
    plan.run_seconds = 0.002;
    plan.working_set = int64_t{64} << 20;
  }
  return plan;
}

void print_json(const KernelBenchPlan& plan, const KernelBenchReport& report) {
  ordered_json object = {{"cpu", cpu_features().model_name},
                         {"isa", kernels().name},
                         {"threads", plan.threads},
                         {"weights", "random"},
                         {"in_cache", plan.in_cache},
                         {"read_bandwidth_gbs", report.read_bandwidth_gbs},
                         {"peak_bf16_tflops", report.peak_bf16_tflops},
                         {"results", ordered_json::array()}};
  for (const KernelResult& result : report.results) {
    object["results"].push_back({{"format", result.format},
                                 {"reading", reading_name(result.reading)},
                                 {"rows", result.rows},
                                 {"n", result.shape.n},
                                 {"k", result.shape.k},
                                 {"rounds", result.rounds},
                                 {"seconds", result.seconds},
                                 {"gbs", result.gbs},
                                 {"read_bandwidth_gbs", result.bandwidth_gbs},
                                 {"fraction_of_bandwidth", result.fraction},
                                 {"tflops", result.tflops}});
  }
  app::write_out(object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

std::string duration_text(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", seconds * 1e6) : fmt::format("{:.2f} ms", seconds * 1e3);
}

void print_text(const KernelBenchPlan& plan, const KernelBenchReport& report) {
  std::string out = fmt::format(
      "{}; {}; {} {}; random weights{}\n"
      "read bandwidth {:.1f} GB/s, bf16 peak {:.3f} TFLOP/s\n",
      cpu_features().model_name, kernels().name, plan.threads, plan.threads == 1 ? "thread" : "threads",
      plan.in_cache ? ", used again and again: in the cache if they fit" : "", report.read_bandwidth_gbs,
      report.peak_bf16_tflops);
  const BenchShape* last = nullptr;
  for (const KernelResult& result : report.results) {
    if (last == nullptr || last->n != result.shape.n || last->k != result.shape.k) {
      out += fmt::format("\n{}\n  {:<19}{:<23}{:>5}{:>12}{:>9}{:>10}{:>10}\n",
                         fmt::format("{} x {}", result.shape.n, result.shape.k), "format", "reading", "rows",
                         "time", "GB/s", "of read", "TFLOP/s");
      last = &result.shape;
    }
    out += fmt::format("  {:<19}{:<23}{:>5}{:>12}{:>9.2f}{:>10}{:>10.3f}\n", result.format,
                       reading_name(result.reading), result.rows, duration_text(result.seconds), result.gbs,
                       fmt::format("{:.0f} %", 100.0 * result.fraction), result.tflops);
  }
  app::write_out(out);
}

void bench(const Options& options) {
  const KernelBenchPlan plan = make_plan(options);
  const KernelBenchReport report =
      measure_kernels(plan, [](double fraction) { app::show_progress("measuring", fraction); });
  app::end_progress();
  options.json ? print_json(plan, report) : print_text(plan, report);
}

}  // namespace

void add_kernels(app::Command program) {
  auto options = std::make_shared<Options>();
  app::Command command = program.add_command(
      "kernels", "Measure the products with weights against the speed at which memory can be read");
  command.add_list("--formats", options->formats, "Weight formats, as bf16,mxfp4; without it all");
  command.add_list("--readings", options->readings, "Readings, as bf16,mxfp4-w4a8; without it all");
  command.add_list("--rows", options->rows, "Rows per product").range(1, 4096).show_default("1,8,16");
  command.add_list("--shapes", options->shapes,
                   "Outputs x inputs of the matrices; without it a large one and a Llama's");
  command.add_option("--threads", options->threads, "Threads to compute with; without it one per processor")
      .range(1, 4096);
  command.add_option("--seconds", options->seconds, "How long to measure each case")
      .show_default()
      .range(0.0, 3600.0);
  command.add_flag("--in-cache", options->in_cache,
                   "Use one copy again and again: what the kernel does when memory does not limit it");
  command.add_flag("--quick", options->quick, "A few runs on little memory: to see that it works");
  command.add_flag("--json", options->json, "Print one JSON object");
  command.footer(
      "Examples:\n"
      "  verbatim-bench kernels --formats bf16,mxfp4 --shapes 8192x8192\n"
      "  verbatim-bench kernels --rows 1,4,16,64 --seconds 3 --json\n"
      "  verbatim-bench kernels --in-cache --shapes 512x2048 --rows 1,8\n"
      "  VERBATIM_ISA=avx2 verbatim-bench kernels --threads 1");
  command.callback([options] { bench(*options); });
}

}  // namespace verbatim::bench
