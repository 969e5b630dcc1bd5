#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "memory_estimate.h"
#include "packed_report.h"

namespace verbatim::app {

/// The tensors of one element type.
struct TensorGroup {
  int64_t count = 0;
  int64_t bytes = 0;
};

struct TokenizerReport {
  std::string kind;
  int32_t size = 0;
  std::optional<int32_t> bos;
  std::optional<int32_t> eos;
  std::string chat_format;
};

struct MachineReport {
  std::string cpu;
  std::vector<std::string> instruction_sets;
  std::string kernels;  ///< those in use, after VERBATIM_ISA
  int32_t threads = 0;
};

/// What `inspect` says of a model and of the machine it would run on.
struct InspectReport {
  Checkpoint checkpoint;
  int64_t parameters = 0;
  int64_t file_bytes = 0;
  std::map<std::string, TensorGroup> tensors_by_dtype;
  std::optional<PackedReport> packed;  ///< of a .vbt file, which has no tensors
  std::optional<TokenizerReport> tokenizer;
  MemoryEstimate memory;
  MachineReport machine;
};

/// Opens a model without packing it. Throws Error as open_checkpoint, open_container, load_tokenizer and
/// kernels do.
InspectReport inspect_model(const std::string& path);

/// "none", "linear" or "llama3", or "factors" where the file states one factor per frequency.
std::string rope_scaling_name(const ModelConfig& config);

/// "512 x 1408"
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace verbatim::app
