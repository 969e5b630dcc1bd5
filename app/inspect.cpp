#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"
#include "commands.h"
#include "inspect_report.h"
#include "interrupt.h"
#include "memory_units.h"
#include "model_options.h"
#include "progress.h"
#include "text_io.h"

namespace verbatim::app {

namespace {

using nlohmann::ordered_json;

struct Options {
  CommonOptions common;
  bool tensors = false;
  bool verify = false;
  bool json = false;
};

/// 25698816 as "25,698,816".
std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return digits;
}

std::string bytes_text(int64_t bytes) {
  return human_bytes(static_cast<double>(bytes));
}

/// Lines of a name and a value, the values one below the other, under a heading.
class Section {
 public:
  Section(std::string& out, const char* heading) : out_(out) {
    out_ += fmt::format("{}{}\n", out_.empty() ? "" : "\n", heading);
  }
  template <typename... Args>
  void line(const char* name, fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format("  {:<18}{}\n", name, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string& out_;
};

std::string rope_text(const ModelConfig& config) {
  const std::string name = rope_scaling_name(config);
  std::string text = fmt::format("theta {}, ", config.rope_theta);
  if (name == "none") return text + "no scaling";
  if (name == "factors") return text + "a factor per frequency";
  text += fmt::format("{} scaling by {}", name, config.rope_scaling.factor);
  if (name != "linear") text += fmt::format(" from a context of {}", config.rope_scaling.original_context);
  return text;
}

std::string token_text(const std::optional<int32_t>& token) {
  return token ? std::to_string(*token) : "none";
}

void add_model_section(std::string& out, const InspectReport& report) {
  const Checkpoint& checkpoint = report.checkpoint;
  const ModelConfig& config = checkpoint.config;
  Section section(out, "model");
  section.line("path", "{}", one_line(checkpoint.path.string()));
  section.line("file format", "{}, {} in {} {}", checkpoint.format, bytes_text(report.file_bytes),
               checkpoint.files.size(), checkpoint.files.size() == 1 ? "file" : "files");
  section.line("architecture", "{}", architecture_name(config.architecture));
  section.line("parameters", "{}", grouped(report.parameters));
  section.line("layers", "{}", config.layers);
  section.line("hidden size", "{}", config.hidden_size);
  section.line("attention", "{} heads of {}, {} for keys and values{}", config.heads, config.head_dim,
               config.kv_heads, config.qkv_bias ? ", with biases" : "");
  section.line("feed-forward size", "{}", config.intermediate_size);
  section.line("vocabulary", "{}, {}", config.vocab_size,
               config.tied_embeddings ? "embedding and output matrix tied" : "output matrix of its own");
  section.line("context", "{} tokens", config.context);
  section.line("rotary positions", "{}", rope_text(config));
  section.line("sliding window", "{}",
               config.sliding_window > 0 ? fmt::format("{} tokens", config.sliding_window) : "none");
}

void add_tensor_sections(std::string& out, const InspectReport& report, bool each) {
  if (report.packed) return;
  Section section(out, "tensors");
  for (const auto& [dtype, group] : report.tensors_by_dtype) {
    section.line(dtype.c_str(), "{:>5}  {:>10}", group.count, bytes_text(group.bytes));
  }
  if (!each) return;
  size_t longest = 0;
  for (const auto& [name, tensor] : report.checkpoint.tensors) {
    longest = std::max(longest, printable(name).size());
  }
  out += '\n';
  for (const auto& [name, tensor] : report.checkpoint.tensors) {
    out += fmt::format("  {:<{}}  {:<5} {:>14} {:>11}\n", printable(name), longest, dtype_name(tensor.dtype),
                       shape_text(tensor.shape), bytes_text(static_cast<int64_t>(tensor.data.size())));
  }
}

void add_packed_sections(std::string& out, const PackedReport& report, bool each) {
  const ContainerHeader& header = report.container.header;
  Section section(out, "packed");
  section.line("made from", "{}", printable(header.source));
  if (header.config.quantization != QuantizationScheme::kNone) {
    section.line("quantization", "{}", scheme_name(header.config.quantization));
  }
  for (const StoredFormatReport& format : report.formats) {
    section.line(std::string(format_name(format.format)).c_str(),
                 "{:>10}  {:.2f} bits per weight, {} matrices in {} planes", bytes_text(format.bytes),
                 format.bits_per_weight(), format.matrices, format.planes);
  }
  section.line("embedding", "{:>10}  {}", bytes_text(static_cast<int64_t>(header.embedding.bytes)),
               dtype_name(header.embedding_type));
  section.line("vectors", "{:>10}  {} in F32", bytes_text(report.vector_bytes), header.vectors.size());
  for (const StoredFile& file : header.tokenizer_files) {
    section.line("vocabulary", "{:>10}  {}", bytes_text(static_cast<int64_t>(file.plane.bytes)),
                 printable(file.name));
  }
  for (const std::string& warning : header.warnings) section.line("warning", "{}", one_line(warning));
  section.line("checksums", "{}",
               report.verified ? "all planes are as they were written" : "not compared: --verify does that");
  if (!each) return;
  const std::vector<NamedPlane> planes = all_planes(header);
  size_t longest = 0;
  for (const NamedPlane& plane : planes) longest = std::max(longest, plane.name.size());
  out += '\n';
  for (const auto& [name, plane] : planes) {
    out += fmt::format("  {:<{}} {:>14} {:>11}  {:016x}\n", name, longest, plane.offset,
                       bytes_text(static_cast<int64_t>(plane.bytes)), plane.checksum);
  }
}

void print_text(const InspectReport& report, bool tensors) {
  std::string out;
  add_model_section(out, report);
  add_tensor_sections(out, report, tensors);
  if (report.packed) add_packed_sections(out, *report.packed, tensors);

  Section tokenizer(out, "tokenizer");
  if (report.tokenizer) {
    tokenizer.line("kind", "{}", report.tokenizer->kind);
    tokenizer.line("tokens", "{}", report.tokenizer->size);
    tokenizer.line("bos, eos", "{}, {}", token_text(report.tokenizer->bos),
                   token_text(report.tokenizer->eos));
    tokenizer.line("chat format", "{}", report.tokenizer->chat_format);
  } else {
    tokenizer.line("kind", "none: text cannot be encoded");
  }

  const MemoryEstimate& memory = report.memory;
  Section needs(out, "memory it will take");
  needs.line("packed weights", "{:>10}", bytes_text(memory.full));
  if (memory.mxfp4 > 0) {
    needs.line("MXFP4 beside them", "{:>10}  for recipes that draft with MXFP4", bytes_text(memory.mxfp4));
  }
  needs.line("KV cache", "{:>10}  per token", bytes_text(memory.kv_per_token));
  needs.line("", "{:>10}  for the whole context", bytes_text(memory.kv_context));

  Section machine(out, "this machine");
  machine.line("processor", "{}", report.machine.cpu);
  machine.line("instruction sets", "{}", fmt::join(report.machine.instruction_sets, ", "));
  machine.line("kernels in use", "{}", report.machine.kernels);
  machine.line("threads", "{}", report.machine.threads);
  write_out(out);
}

ordered_json optional_number(const std::optional<int32_t>& number) {
  return number ? ordered_json(*number) : ordered_json();
}

ordered_json model_json(const InspectReport& report) {
  const Checkpoint& checkpoint = report.checkpoint;
  const ModelConfig& config = checkpoint.config;
  ordered_json model = {{"path", checkpoint.path.string()},
                        {"format", checkpoint.format},
                        {"file_bytes", report.file_bytes},
                        {"files", checkpoint.files.size()},
                        {"architecture", architecture_name(config.architecture)},
                        {"parameters", report.parameters},
                        {"layers", config.layers},
                        {"hidden_size", config.hidden_size},
                        {"heads", config.heads},
                        {"kv_heads", config.kv_heads},
                        {"head_dim", config.head_dim},
                        {"intermediate_size", config.intermediate_size},
                        {"vocab_size", config.vocab_size},
                        {"context", config.context},
                        {"rope_theta", config.rope_theta},
                        {"rope_scaling", rope_scaling_name(config)},
                        {"rope_scaling_factor", config.rope_scaling.factor}};
  model["sliding_window"] = config.sliding_window > 0 ? ordered_json(config.sliding_window) : ordered_json();
  model["tied_embeddings"] = config.tied_embeddings;
  model["qkv_bias"] = config.qkv_bias;
  return model;
}

ordered_json tokenizer_json(const std::optional<TokenizerReport>& tokenizer) {
  if (!tokenizer) return nullptr;
  return {{"kind", tokenizer->kind},
          {"size", tokenizer->size},
          {"bos", optional_number(tokenizer->bos)},
          {"eos", optional_number(tokenizer->eos)},
          {"chat_format", tokenizer->chat_format}};
}

ordered_json tensor_list_json(const Checkpoint& checkpoint) {
  ordered_json list = ordered_json::array();
  for (const auto& [name, tensor] : checkpoint.tensors) {
    list.push_back({{"name", name},
                    {"dtype", dtype_name(tensor.dtype)},
                    {"shape", tensor.shape},
                    {"bytes", tensor.data.size()}});
  }
  return list;
}

ordered_json packed_json(const PackedReport& report) {
  const ContainerHeader& header = report.container.header;
  ordered_json formats = ordered_json::object();
  for (const StoredFormatReport& format : report.formats) {
    formats[std::string(format_name(format.format))] = {{"matrices", format.matrices},
                                                        {"planes", format.planes},
                                                        {"bytes", format.bytes},
                                                        {"weights", format.weights},
                                                        {"bits_per_weight", format.bits_per_weight()}};
  }
  ordered_json files = ordered_json::object();
  for (const StoredFile& file : header.tokenizer_files) files[file.name] = file.plane.bytes;
  return {{"version", kContainerVersion},
          {"source", header.source},
          {"formats", std::move(formats)},
          {"embedding", {{"dtype", dtype_name(header.embedding_type)}, {"bytes", header.embedding.bytes}}},
          {"vectors", {{"count", header.vectors.size()}, {"bytes", report.vector_bytes}}},
          {"vocabulary_files", std::move(files)},
          {"warnings", header.warnings},
          {"verified", report.verified}};
}

ordered_json plane_list_json(const Container& container) {
  ordered_json list = ordered_json::array();
  for (const auto& [name, plane] : all_planes(container.header)) {
    list.push_back({{"name", name},
                    {"offset", plane.offset},
                    {"bytes", plane.bytes},
                    {"checksum", fmt::format("{:016x}", plane.checksum)}});
  }
  return list;
}

void print_json(const InspectReport& report, bool tensors) {
  ordered_json object;
  object["model"] = model_json(report);
  object["dtypes"] = ordered_json::object();
  for (const auto& [dtype, group] : report.tensors_by_dtype) {
    object["dtypes"][dtype] = {{"tensors", group.count}, {"bytes", group.bytes}};
  }
  if (report.packed) object["packed"] = packed_json(*report.packed);
  object["tokenizer"] = tokenizer_json(report.tokenizer);
  object["memory_bytes"] = {{"full", report.memory.full},
                            {"mxfp4", report.memory.mxfp4},
                            {"kv_per_token", report.memory.kv_per_token},
                            {"kv_context", report.memory.kv_context}};
  object["machine"] = {{"cpu", report.machine.cpu},
                       {"instruction_sets", report.machine.instruction_sets},
                       {"kernels", report.machine.kernels},
                       {"threads", report.machine.threads}};
  if (tensors && report.packed) {
    object["planes"] = plane_list_json(report.packed->container);
  } else if (tensors) {
    object["tensors"] = tensor_list_json(report.checkpoint);
  }
  // Names in files may hold bytes that are no UTF-8; JSON cannot.
  write_out(object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

void verify(PackedReport& packed) {
  const InterruptGuard guard;
  verify_container(packed.container, [](double fraction) {
    show_progress("comparing the checksums", fraction);
    return !interrupted();
  });
  end_progress();
  if (interrupted()) throw CLI::RuntimeError(kInterruptedExit);
  packed.verified = true;
}

void inspect(const Options& options) {
  if (options.verify && !is_packed(options.common.model)) {
    fail(ErrorKind::kUsage, "only .vbt files have checksums to verify; {} is none", options.common.model);
  }
  InspectReport report = inspect_model(options.common.model);
  if (options.verify) verify(*report.packed);
  options.json ? print_json(report, options.tensors) : print_text(report, options.tensors);
}

}  // namespace

void add_inspect(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      program.add_subcommand("inspect", "Show what a model is, what memory it takes and how it would run");
  add_model(*command, options->common);
  command->add_flag("--tensors", options->tensors, "List every tensor, or every plane of a .vbt file");
  command->add_flag("--verify", options->verify, "Compare all of a .vbt file with its checksums");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "Examples:\n"
      "  verbatim inspect models/target\n"
      "  verbatim inspect model.gguf --tensors --json\n"
      "  verbatim inspect model.vbt --verify\n"
      "  VERBATIM_ISA=avx2 verbatim inspect models/target");
  command->callback([options] { inspect(*options); });
}

}  // namespace verbatim::app
