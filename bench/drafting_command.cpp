#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/command_line.h"
#include "app/load_model.h"
#include "app/model_options.h"
#include "app/progress.h"
#include "app/text_io.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/new_folder.h"
#include "base/processors.h"
#include "bench/commands.h"
#include "bench/kernels_measurement.h"
#include "bench/passes_measurement.h"
#include "bench/plot.h"
#include "engine/model_access.h"
#include "kernels/dispatch.h"
#include "model/work.h"

namespace verbatim::bench {

namespace {

using nlohmann::ordered_json;

constexpr int64_t kContext = 64;

struct Options {
  std::string model;
  std::string verify = "int4-w4a16";
  std::string draft = "int4-w4a4";
  std::vector<int64_t> batch = {1, 2, 4, 8, 16, 32};
  std::vector<double> acceptance = {0.6, 0.7, 0.8, 0.9, 1.0};
  int32_t length = 3;
  std::vector<std::string> isas;
  int32_t threads = 0;
  double seconds = 1.0;
  std::string folder;
  bool json = false;
};

/// What passes cost for one size of the batch.
struct BatchCosts {
  int64_t batch = 1;
  double plain = 0;            ///< seconds of a pass that verifies a token of each sequence
  double draft = 0;            ///< of one that drafts one
  std::vector<double> verify;  ///< [length - 1]: of one that verifies drafts of so many tokens
};

struct IsaCosts {
  std::string isa;
  double peak_tflops = 0;
  std::vector<BatchCosts> batches;
};

/// A draft length and how fast it is compared with plain decoding.
struct Gain {
  int32_t length = 0;  ///< 0: it is best not to draft
  double speed = 1.0;
};

/// Tokens of a step with drafts of so many tokens, each of which is kept with this probability if those
/// before it are (Leviathan et al., eq. 1).
double tokens_per_step(int32_t length, double acceptance) {
  double tokens = 1.0;
  double kept = 1.0;
  for (int32_t i = 0; i < length; ++i) tokens += kept *= acceptance;
  return tokens;
}

double speed_of(const BatchCosts& costs, int32_t length, double acceptance) {
  const double step = length * costs.draft + costs.verify[static_cast<size_t>(length - 1)];
  return tokens_per_step(length, acceptance) * costs.plain / step;
}

Gain best_gain(const BatchCosts& costs, double acceptance) {
  Gain best;
  for (int32_t length = 1; length <= std::ssize(costs.verify); ++length) {
    const double speed = speed_of(costs, length, acceptance);
    if (speed > best.speed) best = {length, speed};
  }
  return best;
}

/// The least acceptance from which some draft length gains, or nothing where none does.
std::optional<double> break_even(const BatchCosts& costs) {
  constexpr int kSteps = 1000;
  for (int i = 0; i <= kSteps; ++i) {
    const double acceptance = static_cast<double>(i) / kSteps;
    if (best_gain(costs, acceptance).length > 0) return acceptance;
  }
  return std::nullopt;
}

IsaCosts measure(const Options& options, const Decoder& decoder, ThreadTeam& team,
                 const std::function<void(double)>& progress) {
  const Reading verify = parse_reading(options.verify, "--reading");
  const Reading draft = parse_reading(options.draft, "--draft-reading");
  std::vector<PassCase> cases;
  for (const int64_t batch : options.batch) {
    cases.push_back({draft, batch});
    for (int64_t length = 0; length <= options.length; ++length)
      cases.push_back({verify, batch * (length + 1)});
  }
  IsaCosts costs{.isa = kernels().name, .peak_tflops = peak_bf16_tflops(0.02, 7, team), .batches = {}};
  const std::vector<double> seconds =
      pass_seconds(decoder, cases, kContext, options.seconds, 5, team, progress);
  auto next = seconds.begin();
  for (const int64_t batch : options.batch) {
    BatchCosts& of = costs.batches.emplace_back();
    of.batch = batch;
    of.draft = *next++;
    of.plain = *next++;
    of.verify.assign(next, next + options.length);
    next += options.length;
  }
  return costs;
}

/// 10^12 operations per second of the products with weights.
double tflops(const Decoder& decoder, int64_t rows, double seconds) {
  return flops_per_row(decoder) * static_cast<double>(rows) / seconds * 1e-12;
}

ordered_json to_json(const Options& options, const Decoder& decoder, const std::vector<IsaCosts>& all) {
  ordered_json object = {{"model", options.model},
                         {"cpu", cpu_features().model_name},
                         {"weights", origin_name(decoder.config().origin)},
                         {"reading", options.verify},
                         {"draft_reading", options.draft},
                         {"context", kContext},
                         {"isas", ordered_json::array()}};
  for (const IsaCosts& costs : all) {
    ordered_json& isa = object["isas"].emplace_back(ordered_json{
        {"isa", costs.isa}, {"peak_bf16_tflops", costs.peak_tflops}, {"batches", ordered_json::array()}});
    for (const BatchCosts& of : costs.batches) {
      ordered_json batch = {{"batch", of.batch},
                            {"seconds_plain", of.plain},
                            {"seconds_draft", of.draft},
                            {"seconds_verify_by_length", of.verify},
                            {"tflops_plain", tflops(decoder, of.batch, of.plain)},
                            {"tflops_draft", tflops(decoder, of.batch, of.draft)},
                            {"break_even_acceptance", nullptr},
                            {"gains", ordered_json::array()}};
      if (const auto least = break_even(of)) batch["break_even_acceptance"] = *least;
      for (const double acceptance : options.acceptance) {
        const Gain gain = best_gain(of, acceptance);
        batch["gains"].push_back(
            {{"acceptance", acceptance}, {"length", gain.length}, {"speed", gain.speed}});
      }
      isa["batches"].push_back(std::move(batch));
    }
  }
  return object;
}

std::string to_text(const Options& options, const Decoder& decoder, const std::vector<IsaCosts>& all) {
  std::string out = fmt::format(
      "{}; {} weights; drafts in {}, verified in {}; ms per pass over rows of one sequence after {} tokens\n",
      cpu_features().model_name, origin_name(decoder.config().origin), options.draft, options.verify,
      kContext);
  for (const IsaCosts& costs : all) {
    out += fmt::format(
        "\n{}, BF16 peak {:.2f} TFLOP/s; speed over plain decoding with the best length up to {}\n",
        costs.isa, costs.peak_tflops, options.length);
    out += fmt::format("  {:>5}{:>9}{:>9}{:>9}{:>9}{:>9}{:>12}", "batch", "plain", "of peak", "draft",
                       "of peak", "verify", "break-even");
    for (const double acceptance : options.acceptance)
      out += fmt::format("{:>9}", fmt::format("{:g}", acceptance));
    out += "\n";
    for (const BatchCosts& of : costs.batches) {
      const auto share = [&](double seconds) {
        return fmt::format("{:.0f} %", 100.0 * tflops(decoder, of.batch, seconds) / costs.peak_tflops);
      };
      const std::optional<double> least = break_even(of);
      out += fmt::format("  {:>5}{:>9.1f}{:>9}{:>9.1f}{:>9}{:>9.1f}{:>12}", of.batch, of.plain * 1e3,
                         share(of.plain), of.draft * 1e3, share(of.draft), of.verify.back() * 1e3,
                         least ? fmt::format("{:.2f}", *least) : "never");
      for (const double acceptance : options.acceptance) {
        const Gain gain = best_gain(of, acceptance);
        out += fmt::format("{:>9}",
                           gain.length == 0 ? "1" : fmt::format("{:.2f} ({})", gain.speed, gain.length));
      }
      out += "\n";
    }
  }
  return out + "In brackets the length; 1 where it is best not to draft.\n";
}

Plot figure(const Options& options, const Decoder& decoder, const IsaCosts& costs) {
  Plot plot;
  plot.title = fmt::format("Drafts in {}: speed over {} alone", options.draft, options.verify);
  plot.subtitle =
      fmt::format("from costs of passes on {}, {} weights; the best length up to {}, by acceptance",
                  costs.isa, origin_name(decoder.config().origin), options.length);
  plot.x_label = "sequences that share a pass";
  plot.y_label = "speed";
  plot.logarithmic_x = true;
  plot.level = 1.0;
  plot.level_name = "no drafts";
  for (const double acceptance : options.acceptance) {
    PlotSeries& series =
        plot.series.emplace_back(PlotSeries{.name = fmt::format("{:g} accepted", acceptance), .points = {}});
    for (const BatchCosts& of : costs.batches) {
      double best = 0;
      for (int32_t length = 1; length <= options.length; ++length) {
        best = std::max(best, speed_of(of, length, acceptance));
      }
      series.points.push_back({static_cast<double>(of.batch), best});
    }
  }
  return plot;
}

std::vector<Isa> chosen_isas(const Options& options) {
  if (options.isas.empty()) return {preferred_isa()};
  std::vector<Isa> isas;
  for (const std::string& name : options.isas) isas.push_back(parse_isa(name));
  return isas;
}

void bench(const Options& options) {
  const std::vector<Isa> isas = chosen_isas(options);
  std::vector<const KernelTable*> tables;
  for (const Isa isa : isas) tables.push_back(&kernel_table(isa, cpu_features()));
  if (!options.folder.empty()) NewFolder(options.folder);  // refused before anything is measured
  std::vector<std::string> formats;
  for (const std::string& name : {options.verify, options.draft}) {
    const std::string format = format_of_reading(name, "--reading");
    if (std::find(formats.begin(), formats.end(), format) == formats.end()) formats.push_back(format);
  }
  const int threads = options.threads > 0 ? options.threads : hardware_threads();
  const Model model = app::load_model(options.model, formats, threads);
  const Decoder& decoder = data_of(model).decoder;
  const int64_t most_rows =
      *std::max_element(options.batch.begin(), options.batch.end()) * (options.length + 1);
  if (kContext + most_rows > model.context()) {
    fail(ErrorKind::kUsage,
         "the model's context of {} tokens is too short for {} rows: lower --batch or --length",
         model.context(), most_rows);
  }
  ThreadTeam team(threads);
  std::vector<IsaCosts> all;
  for (const KernelTable* const table : tables) {
    select_kernels(*table);
    all.push_back(measure(options, decoder, team, [&](double fraction) {
      const auto done = static_cast<double>(all.size());
      app::show_progress("measuring", (done + fraction) / static_cast<double>(tables.size()));
    }));
  }
  app::end_progress();
  const std::string json =
      to_json(options, decoder, all).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  if (!options.folder.empty()) {
    NewFolder folder(options.folder);
    for (size_t i = 0; i < all.size(); ++i) {
      folder.write(fmt::format("drafting-{}.svg", isa_name(isas[i])).c_str(),
                   svg(figure(options, decoder, all[i])));
    }
    folder.write("drafting.json", json);
    folder.keep();
  }
  app::write_out(options.json ? json : to_text(options, decoder, all));
}

}  // namespace

void add_drafting(app::Command program) {
  auto options = std::make_shared<Options>();
  app::Command command = program.add_command(
      "drafting", "Where drafts in one reading gain over another: costs of passes, by batch and acceptance");
  command.add_option("MODEL", options->model, "A directory in Hugging Face layout, a .gguf or a .vbt file")
      .required();
  command.add_option("--reading", options->verify, "What verifies").show_default();
  command.add_option("--draft-reading", options->draft, "What drafts").show_default();
  command.add_list("--batch", options->batch, "Sequences that share a pass")
      .range(1, 256)
      .show_default("1,2,4,8,16,32");
  command.add_list("--acceptance", options->acceptance, "How likely a draft is kept if those before it are")
      .range(0.0, 1.0)
      .show_default("0.6,0.7,0.8,0.9,1");
  command.add_option("--length", options->length, "The longest draft").range(1, 16).show_default();
  command.add_list("--isas", options->isas,
                   "Instruction sets to compare, as amx,avx512; without it the best");
  command.add_option("--threads", options->threads, "Threads; without it one per processor").range(1, 4096);
  command.add_option("--seconds", options->seconds, "How long to measure each pass")
      .range(0.0, 3600.0)
      .show_default();
  command.add_option("-o,--output", options->folder, "The directory to make for the figures");
  command.add_flag("--json", options->json, "Print one JSON object");
  command.footer(
      "The speed of drafting is reckoned: the tokens of a step over what its passes cost. Passes are over\n"
      "arbitrary tokens of one sequence, so that attention to many pasts is left out and nothing is said "
      "about\n"
      "acceptance; `verbatim bench throughput` measures both. Parts of the peak are of the BF16 one; "
      "products\n"
      "in integers may reach more.\n"
      "\n"
      "Examples:\n"
      "  verbatim-bench drafting big --isas amx,avx512,avx2 -o figures\n"
      "  verbatim-bench drafting big --reading full --draft-reading mxfp4-w4a8 --batch 1,8 --json");
  command.callback([options] { bench(*options); });
}

}  // namespace verbatim::bench
