#include "inspect_report.h"

#include <fmt/format.h>

#include "base/cpu.h"
#include "base/thread_team.h"
#include "container/load.h"
#include "kernels/dispatch.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace verbatim::app {

namespace {

TokenizerReport inspect_tokenizer(const TokenizerSource& source) {
  const auto tokenizer = load_tokenizer(source);
  return {.kind = tokenizer->kind(),
          .size = tokenizer->vocab_size(),
          .bos = tokenizer->bos(),
          .eos = tokenizer->eos(),
          .chat_format = detect_chat_format(*tokenizer).name};
}

MachineReport inspect_machine() {
  const CpuFeatures& features = cpu_features();
  MachineReport report;
  report.cpu = features.model_name;
  for (const Isa isa : available_isas(features)) {
    report.instruction_sets.emplace_back(kernel_table(isa, features).name);
  }
  report.kernels = kernels().name;
  report.threads = hardware_threads();
  return report;
}

void inspect_checkpoint(InspectReport& report, const std::string& path) {
  report.checkpoint = open_checkpoint(path);
  for (const auto& [name, tensor] : report.checkpoint.tensors) {
    TensorGroup& group = report.tensors_by_dtype[dtype_name(tensor.dtype)];
    ++group.count;
    group.bytes += static_cast<int64_t>(tensor.data.size());
    report.parameters += tensor.rows() * tensor.columns();
  }
  report.memory = estimate_memory(report.checkpoint);
}

void inspect_packed(InspectReport& report, const std::string& path) {
  report.packed = report_packed(open_container(path));
  const Container& container = report.packed->container;
  report.checkpoint = checkpoint_of(container);
  report.parameters = parameters_of(container.header);
  report.memory = estimate_memory(container);
}

}  // namespace

InspectReport inspect_model(const std::string& path) {
  InspectReport report;
  is_packed(path) ? inspect_packed(report, path) : inspect_checkpoint(report, path);
  const Checkpoint& checkpoint = report.checkpoint;
  for (const auto& file : checkpoint.files) report.file_bytes += static_cast<int64_t>(file->bytes().size());
  if (checkpoint.tokenizer.kind != TokenizerSource::Kind::kNone) {
    report.tokenizer = inspect_tokenizer(checkpoint.tokenizer);
  }
  report.machine = inspect_machine();
  return report;
}

std::string rope_scaling_name(const ModelConfig& config) {
  if (!config.rope_frequency_factors.empty()) return "factors";
  switch (config.rope_scaling.kind) {
    case RopeScaling::Kind::kNone:
      return "none";
    case RopeScaling::Kind::kLinear:
      return "linear";
    case RopeScaling::Kind::kLlama3:
      return "llama3";
    case RopeScaling::Kind::kDynamic:
      return "dynamic";
    case RopeScaling::Kind::kYarn:
      return "yarn";
  }
  return "none";
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, " x "));
}

}  // namespace verbatim::app
