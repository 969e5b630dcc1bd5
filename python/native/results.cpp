#include "results.h"

#include <pybind11/stl.h>

#include <memory>
#include <utility>

#include "arguments.h"
#include "verbatim/engine.h"

namespace verbatim::python {

namespace py = pybind11;

RecipeResult::RecipeResult(GenerateResult result_, const Recipe& recipe)
    : result(std::move(result_)),
      stats{.stats = std::exchange(result.stats, {}),
            .recipe = recipe.name,
            .guarantee = std::string(recipe.guarantee()),
            .lossless = recipe.lossless()} {}

namespace {

py::list levels_of(const Stats& stats) {
  py::list levels;
  for (const LevelStats& level : stats.levels) {
    py::dict each;
    each["drafts"] = str_of(level.level.short_name());
    each["drafted"] = level.drafted;
    each["accepted"] = level.accepted;
    each["passes"] = level.passes;
    each["seconds"] = level.seconds;
    levels.append(each);
  }
  return levels;
}

py::list depths_of(const Stats& stats) {
  py::list depths;
  for (const DepthStats& depth : stats.depths) {
    py::dict each;
    each["drafted"] = depth.drafted;
    each["accepted"] = depth.accepted;
    depths.append(each);
  }
  return depths;
}

py::dict plans_of(const Stats& stats) {
  py::dict plans;
  for (const PlanStats& plan : stats.plans) plans[str_of(plan.name)] = plan.steps;
  return plans;
}

struct Statistic {
  const char* name;
  py::object (*get)(const RecipeStats& stats);
  const char* doc;
};

template <auto member>
py::object field(const RecipeStats& stats) {
  return py::cast(stats.stats.*member);
}

template <auto function>
py::object computed(const RecipeStats& stats) {
  return py::cast((stats.stats.*function)());
}

constexpr Statistic kStatistics[] = {
    {"recipe", [](const RecipeStats& s) -> py::object { return str_of(s.recipe); }, "The recipe's name."},
    {"lossless", [](const RecipeStats& s) -> py::object { return py::bool_(s.lossless); },
     "Whether the text is byte for byte that of plain decoding."},
    {"guarantee", [](const RecipeStats& s) -> py::object { return str_of(s.guarantee); },
     "What of plain decoding the recipe keeps: 'bytes', 'distribution' or 'none'."},
    {"finish_reason",
     [](const RecipeStats& s) -> py::object { return str_of(finish_reason_name(s.stats.finish)); },
     "Why the text ends: 'length', 'eos', 'stop', 'context', 'cancelled' or 'deadline'."},
    {"prompt_tokens", field<&Stats::prompt_tokens>,
     "Tokens of the prompt that were evaluated; remembered ones are left out."},
    {"generated_tokens", field<&Stats::generated_tokens>, "Tokens that were generated."},
    {"drafted", field<&Stats::drafted>, "Tokens that were proposed to the model."},
    {"accepted", field<&Stats::accepted>, "Proposed tokens that the model kept."},
    {"acceptance_rate", computed<&Stats::acceptance_rate>, "Accepted over drafted tokens; 0 without drafts."},
    {"mean_accepted_length", computed<&Stats::mean_accepted_length>,
     "Tokens gained in a pass of the model while decoding; 1 for plain decoding."},
    {"target_passes", field<&Stats::target_passes>, "Passes of the model while decoding."},
    {"draft_passes", field<&Stats::draft_passes>, "Passes of all drafters."},
    {"passes",
     [](const RecipeStats& s) -> py::object {
       return py::cast(s.stats.target_passes + s.stats.draft_passes);
     },
     "Passes of the model and of all drafters together."},
    {"structure_drafted", field<&Stats::structure_drafted>,
     "Drafted tokens that were the only ones which the schema or regular expression left."},
    {"structure_accepted", field<&Stats::structure_accepted>, "Those of structure_drafted that were kept."},
    {"fallbacks", field<&Stats::fallbacks>, "Steps whose drafting ended because the drafter was unsure."},
    {"rollbacks", field<&Stats::rollbacks>, "Steps in which the model rejected a draft."},
    {"tokens_per_second", computed<&Stats::tokens_per_second>,
     "Tokens after the first, per second of decoding."},
    {"seconds",
     [](const RecipeStats& s) -> py::object {
       return py::cast(s.stats.seconds_prefill + s.stats.seconds_decode);
     },
     "Time of the whole computation."},
    {"seconds_prefill", field<&Stats::seconds_prefill>, "Time until the first token was known."},
    {"seconds_decode", field<&Stats::seconds_decode>, "Time after that."},
    {"seconds_draft", field<&Stats::seconds_draft>, "Part of the decoding time: proposing."},
    {"seconds_verify", field<&Stats::seconds_verify>, "Part of the decoding time: the model's passes."},
    {"seconds_sampling", field<&Stats::seconds_sampling>, "Part of the decoding time: choosing tokens."},
    {"seconds_planning", field<&Stats::seconds_planning>, "Part of the decoding time: the planner."},
    {"seconds_overhead", computed<&Stats::seconds_overhead>, "Part of the decoding time: the rest."},
    {"levels", [](const RecipeStats& s) -> py::object { return levels_of(s.stats); },
     "For each level of the recipe what it drafted, a dict."},
    {"depths", [](const RecipeStats& s) -> py::object { return depths_of(s.stats); },
     "For each depth of the drafts how many steps drafted and kept a token there, a dict."},
    {"lengths", [](const RecipeStats& s) -> py::object { return py::cast(s.stats.lengths); },
     "How many steps kept 0, 1, 2, ... drafts."},
    {"plans", [](const RecipeStats& s) -> py::object { return plans_of(s.stats); },
     "How often the planner of a planned recipe chose a way to draft."},
};

py::dict as_dict(const RecipeStats& stats) {
  py::dict dict;
  for (const Statistic& each : kStatistics) dict[each.name] = each.get(stats);
  return dict;
}

py::object logprobs_of(const RecipeResult& result) {
  return py::cast(result.result.logprobs);
}

py::list origins_of(const RecipeResult& result) {
  py::list origins;
  for (const TokenOrigin& origin : result.result.origins) origins.append(py::cast(origin));
  return origins;
}

void bind_tokens(py::module_& module) {
  py::class_<ScoredToken>(module, "ScoredToken", "A token and how likely the model held it in its place.")
      .def_readonly("token", &ScoredToken::token, "The token's id.")
      .def_readonly("logprob", &ScoredToken::logprob, "The natural logarithm of its probability.")
      .def_property_readonly(
          "top",
          [](const ScoredToken& scored) {
            py::list top;
            for (const TokenLogprob& each : scored.top) top.append(py::make_tuple(each.token, each.logprob));
            return top;
          },
          "The likeliest tokens in this place with their log-probabilities, the best first.")
      .def("__repr__", [](const ScoredToken& scored) {
        return py::str("ScoredToken(token={}, logprob={})").format(scored.token, scored.logprob);
      });
  py::class_<TokenOrigin>(module, "TokenOrigin", "How a token came into the text.")
      .def_property_readonly(
          "kind", [](const TokenOrigin& origin) { return str_of(origin_name(origin.kind)); },
          "'plain', 'drafted' (and kept) or 'corrected' (chosen over a draft).")
      .def_readonly("level", &TokenOrigin::level,
                    "The level of the recipe that drafted; -1 for a plain token, -2 for a structure.")
      .def_readonly("confidence", &TokenOrigin::confidence, "How sure the drafter was, from 0 to 1.")
      .def("__repr__", [](const TokenOrigin& origin) {
        return py::str("TokenOrigin(kind={!r}, level={}, confidence={})")
            .format(str_of(origin_name(origin.kind)), origin.level, origin.confidence);
      });
}

void bind_engine_stats(py::module_& module) {
  using Passes = EngineStats::Passes;
  py::class_<Passes>(module, "Passes", "Passes of one kind.")
      .def_readonly("count", &Passes::count, "How many there were.")
      .def_readonly("rows", &Passes::rows, "The tokens of all sequences in them.")
      .def_readonly("seconds", &Passes::seconds, "The time that they took.");
  py::class_<EngineStats>(module, "EngineStats",
                          "What a model's engine does and has done since it was loaded.")
      .def_readonly("waiting", &EngineStats::waiting, "Requests whose turn has not come.")
      .def_readonly("running", &EngineStats::running, "Requests that are being answered.")
      .def_readonly("finished", &EngineStats::finished, "Requests that have ended.")
      .def_readonly("preemptions", &EngineStats::preemptions, "How often a sequence lost its memory.")
      .def_readonly("whole_model", &EngineStats::whole_model, "Passes that verified or read prompts.")
      .def_readonly("drafts", &EngineStats::drafts, "Passes that drafted.")
      .def_readonly("prompt_tokens_remembered", &EngineStats::prompt_tokens_remembered,
                    "Tokens of prompts that need not be evaluated again.")
      .def_readonly("prompt_tokens_from_disk", &EngineStats::prompt_tokens_from_disk,
                    "Those of prompt_tokens_remembered that were read from cache_dir.")
      .def_readonly("disk_cache_errors", &EngineStats::disk_cache_errors, "Failures to use cache_dir.")
      .def_readonly("cache_bytes", &EngineStats::cache_bytes, "Memory for keys and values.")
      .def_readonly("cache_bytes_taken", &EngineStats::cache_bytes_taken, "Part of it that is in use.");
}

}  // namespace

void bind_results(py::module_& module) {
  bind_tokens(module);
  bind_engine_stats(module);
  py::class_<RecipeStats> stats(
      module, "Stats", "What a generation took and what became of its drafts. Times are in seconds.");
  for (const Statistic& each : kStatistics) stats.def_property_readonly(each.name, each.get, each.doc);
  stats.def("as_dict", as_dict, "All of it as a dict.");
  stats.def("__repr__", [](const RecipeStats& s) { return py::str("Stats({})").format(as_dict(s)); });
  py::class_<RecipeResult, std::shared_ptr<RecipeResult>>(
      module, "Result", "A text that was generated. str() of it is the text.")
      .def_property_readonly(
          "text", [](const RecipeResult& r) { return str_of(r.result.text); },
          "The text, without what only ended it. Bytes that are no UTF-8 are shown as U+FFFD.")
      .def_property_readonly(
          "raw", [](const RecipeResult& r) { return py::bytes(r.result.text); }, "The bytes of the text.")
      .def_property_readonly(
          "tokens", [](const RecipeResult& r) { return py::cast(r.result.tokens); },
          "The generated tokens, the one that ended the text included.")
      .def_property_readonly("logprobs", logprobs_of,
                             "A ScoredToken for each token, if top_logprobs asked for them; else empty.")
      .def_property_readonly("origins", origins_of,
                             "A TokenOrigin for each token, if origins asked for them; else empty.")
      .def_readonly("stats", &RecipeResult::stats, "What the generation took: a Stats.")
      .def_property_readonly(
          "finish_reason",
          [](const RecipeResult& r) { return str_of(finish_reason_name(r.stats.stats.finish)); },
          "Why the text ends: 'length', 'eos', 'stop', 'context', 'cancelled' or 'deadline'.")
      .def("__str__", [](const RecipeResult& r) { return str_of(r.result.text); })
      .def("__repr__", [](const RecipeResult& r) {
        return py::str("Result(text={!r}, finish_reason={!r}, generated_tokens={})")
            .format(str_of(r.result.text), str_of(finish_reason_name(r.stats.stats.finish)),
                    r.stats.stats.generated_tokens);
      });
}

}  // namespace verbatim::python
