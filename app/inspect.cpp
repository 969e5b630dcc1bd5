#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "commands.h"
#include "inspect_outlook.h"
#include "inspect_sparse.h"
#include "interrupt.h"
#include "memory_units.h"
#include "model_options.h"
#include "progress.h"
#include "section.h"
#include "text_io.h"
#include "verbatim/verbatim.h"

namespace verbatim::app {

namespace {

using nlohmann::ordered_json;

struct Options {
  CommonOptions common;
  bool tensors = false;
  bool verify = false;
  std::string sensitivities;
  std::vector<int64_t> contexts;
  bool json = false;
};

/// Whether this machine's bytes are those of every other, and what it takes.
std::string portable_text(const MachineReport& machine) {
  if (machine.portable) return "yes: lossless recipes give the same bytes here as with --portable elsewhere";
  return fmt::format("no: --portable computes with \"{}\", which read prompts more slowly",
                     machine.portable_kernels);
}

std::string rope_text(const ModelReport& report) {
  const std::string& name = report.rope_scaling;
  std::string text = fmt::format("theta {}, ", report.rope_theta);
  if (report.window_rope_theta > 0)
    text += fmt::format("{} where there is a window, ", report.window_rope_theta);
  if (report.rotary_dim < report.head_dim) text += fmt::format("{} channels of a head, ", report.rotary_dim);
  if (name == "none") return text + "no scaling";
  if (name == "factors") return text + "a factor per frequency";
  text += fmt::format("{} scaling by {}", name, report.rope_scaling_factor);
  if (name != "linear") text += fmt::format(" from a context of {}", report.rope_scaling_context);
  return text;
}

/// ", except in layers 3, 7"; empty for no layers
std::string except_text(const std::vector<int32_t>& layers) {
  if (layers.empty()) return "";
  return fmt::format(", except in layer{} {}", layers.size() == 1 ? "" : "s", fmt::join(layers, ", "));
}

/// "attention 0.4, embedding 12"
std::string scales_text(const std::map<std::string, float>& scales) {
  std::vector<std::string> parts;
  for (const auto& [name, factor] : scales) parts.push_back(fmt::format("{} {}", name, factor));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "512 x 1408"
std::string shape_text(const std::vector<int64_t>& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, " x "));
}

std::string token_text(const std::optional<int32_t>& token) {
  return token ? std::to_string(*token) : "none";
}

void add_model_section(std::string& out, const ModelReport& report) {
  Section section(out, "model");
  section.line("path", "{}", one_line(report.path.string()));
  section.line("file format", "{}, {} in {} {}", report.file_format, human_bytes(report.file_bytes),
               report.files, report.files == 1 ? "file" : "files");
  section.line("architecture", "{}", report.architecture);
  section.line("parameters", "{}", grouped(report.parameters));
  section.line("layers", "{}", report.layers);
  section.line("hidden size", "{}", report.hidden_size);
  section.line("attention", "{} heads of {}, {} for keys and values{}{}{}", report.heads, report.head_dim,
               report.kv_heads, report.qkv_bias ? ", with biases" : "",
               report.head_sinks ? ", with sinks" : "",
               report.head_norm == "none" ? "" : ", queries and keys normed " + report.head_norm);
  if (report.block_norms != "before")
    section.line("norms", "{}the parts of a layer",
                 report.block_norms == "both" ? "before and after " : "after ");
  if (report.layer_norm) section.line("norms", "LayerNorms with biases");
  if (!report.scales.empty()) section.line("factors", "{}", scales_text(report.scales));
  if (report.score_cap) section.line("soft cap of scores", "{}", *report.score_cap);
  if (report.logit_cap) section.line("soft cap of logits", "{}", *report.logit_cap);
  section.line("feed-forward size", "{}{}{}", report.intermediate_size,
               report.activation == "silu" ? "" : ", " + report.activation,
               report.plain_mlp ? ", without a gate" : "");
  if (report.experts > 0) {
    section.line("experts", "{} of size {}, {} for each token{}", report.experts,
                 report.expert_intermediate_size, report.experts_used, except_text(report.dense_layers));
  }
  section.line("vocabulary", "{}, {}", report.vocab_size,
               report.tied_embeddings ? "embedding and output matrix tied" : "output matrix of its own");
  section.line("context", "{} tokens", report.context);
  if (report.learned_positions) {
    section.line("positions", "learned");
  } else {
    section.line("rotary positions", "{}{}", rope_text(report), except_text(report.unrotated_layers));
  }
  section.line("sliding window", "{}{}",
               report.sliding_window ? fmt::format("{} tokens", *report.sliding_window) : "none",
               except_text(report.windowless_layers));
}

void add_tensor_sections(std::string& out, const ModelReport& report, bool each) {
  if (report.packed) return;
  Section section(out, "tensors");
  for (const auto& [type, group] : report.types) {
    section.line(type.c_str(), "{:>5}  {:>10}  {:.2f} bits per weight", group.count, human_bytes(group.bytes),
                 group.bits_per_weight());
  }
  if (!each) return;
  size_t longest = 0;
  for (const TensorReport& tensor : report.tensors) {
    longest = std::max(longest, shown_name(tensor.name).size());
  }
  out += '\n';
  for (const TensorReport& tensor : report.tensors) {
    out += fmt::format("  {:<{}}  {:<5} {:>14} {:>11}\n", shown_name(tensor.name), longest, tensor.type,
                       shape_text(tensor.shape), human_bytes(tensor.bytes));
  }
}

void add_packed_sections(std::string& out, const PackedReport& report, bool each) {
  Section section(out, "packed");
  section.line("made from", "{}", shown_name(report.source));
  if (report.quantization != "none") section.line("quantization", "{}", report.quantization);
  for (const StoredFormatReport& format : report.formats) {
    section.line(format.format.c_str(), "{:>10}  {:.2f} bits per weight, {} matrices in {} planes",
                 human_bytes(format.bytes), format.bits_per_weight(), format.matrices, format.planes);
  }
  section.line("embedding", "{:>10}  {}", human_bytes(report.embedding_bytes), report.embedding_type);
  section.line("vectors", "{:>10}  {} in F32", human_bytes(report.vector_bytes), report.vectors);
  for (const StoredFileReport& file : report.vocabulary_files) {
    section.line("vocabulary", "{:>10}  {}", human_bytes(file.bytes), shown_name(file.name));
  }
  for (const std::string& warning : report.warnings) section.line("warning", "{}", one_line(warning));
  section.line("checksums", "{}",
               report.verified ? "all planes are as they were written" : "not compared: --verify does that");
  add_sparse_sections(out, report.sparse, each);
  if (!each) return;
  size_t longest = 0;
  for (const PlaneReport& plane : report.planes) longest = std::max(longest, plane.name.size());
  out += '\n';
  for (const PlaneReport& plane : report.planes) {
    out += fmt::format("  {:<{}} {:>14} {:>11}  {:016x}\n", plane.name, longest, plane.offset,
                       human_bytes(static_cast<int64_t>(plane.bytes)), plane.checksum);
  }
}

void print_text(const ModelReport& report, const MachineReport& machine, const Outlook& outlook,
                const Options& options) {
  std::string out;
  add_model_section(out, report);
  add_tensor_sections(out, report, options.tensors);
  if (report.packed) add_packed_sections(out, *report.packed, options.tensors);

  Section tokenizer(out, "tokenizer");
  if (report.vocabulary) {
    tokenizer.line("kind", "{}", report.vocabulary->kind);
    tokenizer.line("tokens", "{}", report.vocabulary->tokens);
    tokenizer.line("bos, eos", "{}, {}", token_text(report.vocabulary->bos),
                   token_text(report.vocabulary->eos));
    tokenizer.line("chat format", "{}", report.vocabulary->chat_format);
  } else {
    tokenizer.line("kind", "none: text cannot be encoded");
  }

  add_memory_section(out, report, options.contexts);

  Section here(out, "this machine");
  here.line("processor", "{}", machine.cpu);
  here.line("instruction sets", "{}", fmt::join(machine.instruction_sets, ", "));
  here.line("kernels in use", "{}", machine.kernels);
  here.line("portable", "{}", portable_text(machine));
  here.line("threads", "{} ({})", machine.threads, machine.threads_reason);
  add_outlook_section(out, report, outlook);
  write_out(out);
}

ordered_json optional_number(const std::optional<int32_t>& number) {
  return number ? ordered_json(*number) : ordered_json();
}

ordered_json model_json(const ModelReport& report) {
  return {{"path", report.path.string()},
          {"format", report.file_format},
          {"file_bytes", report.file_bytes},
          {"files", report.files},
          {"architecture", report.architecture},
          {"parameters", report.parameters},
          {"layers", report.layers},
          {"hidden_size", report.hidden_size},
          {"heads", report.heads},
          {"kv_heads", report.kv_heads},
          {"head_dim", report.head_dim},
          {"intermediate_size", report.intermediate_size},
          {"experts", report.experts},
          {"experts_used", report.experts_used},
          {"expert_intermediate_size", report.expert_intermediate_size},
          {"dense_layers", report.dense_layers},
          {"vocab_size", report.vocab_size},
          {"context", report.context},
          {"activation", report.activation},
          {"layer_norm", report.layer_norm},
          {"plain_mlp", report.plain_mlp},
          {"learned_positions", report.learned_positions},
          {"score_cap", report.score_cap ? ordered_json(*report.score_cap) : ordered_json()},
          {"logit_cap", report.logit_cap ? ordered_json(*report.logit_cap) : ordered_json()},
          {"window_rope_theta", report.window_rope_theta},
          {"rotary_dim", report.rotary_dim},
          {"rope_theta", report.rope_theta},
          {"rope_scaling", report.rope_scaling},
          {"rope_scaling_factor", report.rope_scaling_factor},
          {"sliding_window", optional_number(report.sliding_window)},
          {"windowless_layers", report.windowless_layers},
          {"unrotated_layers", report.unrotated_layers},
          {"tied_embeddings", report.tied_embeddings},
          {"qkv_bias", report.qkv_bias},
          {"head_sinks", report.head_sinks},
          {"head_norm", report.head_norm},
          {"block_norms", report.block_norms},
          {"scales", report.scales}};
}

ordered_json vocabulary_json(const std::optional<VocabularyReport>& vocabulary) {
  if (!vocabulary) return nullptr;
  return {{"kind", vocabulary->kind},
          {"size", vocabulary->tokens},
          {"bos", optional_number(vocabulary->bos)},
          {"eos", optional_number(vocabulary->eos)},
          {"chat_format", vocabulary->chat_format}};
}

ordered_json tensor_list_json(const ModelReport& report) {
  ordered_json list = ordered_json::array();
  for (const TensorReport& tensor : report.tensors) {
    list.push_back(
        {{"name", tensor.name}, {"dtype", tensor.type}, {"shape", tensor.shape}, {"bytes", tensor.bytes}});
  }
  return list;
}

ordered_json packed_json(const PackedReport& report) {
  ordered_json formats = ordered_json::object();
  for (const StoredFormatReport& format : report.formats) {
    formats[format.format] = {{"matrices", format.matrices},
                              {"planes", format.planes},
                              {"bytes", format.bytes},
                              {"weights", format.weights},
                              {"bits_per_weight", format.bits_per_weight()}};
  }
  ordered_json files = ordered_json::object();
  for (const StoredFileReport& file : report.vocabulary_files) files[file.name] = file.bytes;
  return {{"version", report.version},
          {"source", report.source},
          {"formats", std::move(formats)},
          {"embedding", {{"dtype", report.embedding_type}, {"bytes", report.embedding_bytes}}},
          {"vectors", {{"count", report.vectors}, {"bytes", report.vector_bytes}}},
          {"sparse", sparse_json(report.sparse)},
          {"vocabulary_files", std::move(files)},
          {"warnings", report.warnings},
          {"verified", report.verified}};
}

ordered_json plane_list_json(const PackedReport& report) {
  ordered_json list = ordered_json::array();
  for (const PlaneReport& plane : report.planes) {
    list.push_back({{"name", plane.name},
                    {"offset", plane.offset},
                    {"bytes", plane.bytes},
                    {"checksum", fmt::format("{:016x}", plane.checksum)}});
  }
  return list;
}

void print_json(const ModelReport& report, const MachineReport& machine, const Outlook& outlook,
                const Options& options) {
  ordered_json object;
  object["model"] = model_json(report);
  object["dtypes"] = ordered_json::object();
  for (const auto& [type, group] : report.types) {
    object["dtypes"][type] = {
        {"tensors", group.count}, {"bytes", group.bytes}, {"bits_per_weight", group.bits_per_weight()}};
  }
  if (report.packed) object["packed"] = packed_json(*report.packed);
  object["tokenizer"] = vocabulary_json(report.vocabulary);
  object["memory_bytes"] = {{"full", report.memory.full},
                            {"pass", report.memory.pass},
                            {"mxfp4", report.memory.mxfp4},
                            {"kv_per_token", report.memory.kv_per_token},
                            {"kv_context", report.memory.kv_context}};
  object["machine"] = {{"cpu", machine.cpu},
                       {"instruction_sets", machine.instruction_sets},
                       {"kernels", machine.kernels},
                       {"portable", machine.portable},
                       {"portable_kernels", machine.portable_kernels},
                       {"threads", machine.threads},
                       {"threads_reason", machine.threads_reason}};
  object["outlook"] = outlook_json(report, outlook, options.contexts);
  if (options.tensors && report.packed) {
    object["planes"] = plane_list_json(*report.packed);
  } else if (options.tensors) {
    object["tensors"] = tensor_list_json(report);
  }
  // Names in files may hold bytes that are no UTF-8; JSON cannot.
  write_out(object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

/// The report of a model whose planes are compared with their checksums. Ctrl-C ends that and the program.
ModelReport verify_model(const std::string& path, const std::string& sensitivities) {
  const InterruptGuard guard;
  ModelReport report = inspect_model(
      path, {.verify = true,
             .sensitivities = sensitivities,
             .progress = [](double fraction) { show_progress("comparing the checksums", fraction); },
             .cancelled = interrupted});
  end_progress();
  if (interrupted()) throw Exit{kInterruptedExit};
  return report;
}

void inspect(const Options& options) {
  const std::string& path = options.common.model;
  const ModelReport report = options.verify ? verify_model(path, options.sensitivities)
                                            : inspect_model(path, {.sensitivities = options.sensitivities});
  const MachineReport machine = describe_machine();
  const Outlook outlook = outlook_for(report);
  options.json ? print_json(report, machine, outlook, options)
               : print_text(report, machine, outlook, options);
}

}  // namespace

void add_inspect(Command program) {
  auto options = std::make_shared<Options>();
  Command command =
      program.add_command("inspect", "Show what a model is, what memory it takes and how it would run");
  add_model(command, options->common);
  command.add_flag("--tensors", options->tensors, "List every tensor, or every plane of a .vbt file");
  command.add_flag("--verify", options->verify, "Compare all of a .vbt file with its checksums");
  command
      .add_option("--sensitivities", options->sensitivities,
                  "A .safetensors file of sensitivities: say how much of them the sparse parts of\n"
                  "squeeze3 and squeeze4 hold")
      .type_name("FILE");
  command
      .add_list("--contexts", options->contexts, "Contexts in tokens, as 4096,32768, to show the memory of")
      .range(int64_t{1}, int64_t{1} << 40);
  add_portable(command);
  command.add_flag("--json", options->json, "Print one JSON object");
  command.footer(
      "Examples:\n"
      "  verbatim inspect models/target\n"
      "  verbatim inspect model.gguf --contexts 4096,32768\n"
      "  verbatim inspect model.gguf --tensors --json\n"
      "  verbatim inspect model.vbt --verify\n"
      "  VERBATIM_ISA=avx2 verbatim inspect models/target");
  command.callback([options] { inspect(*options); });
}

}  // namespace verbatim::app
