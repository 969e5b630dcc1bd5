#pragma once

#include <string>
#include <vector>

#include "container/pack.h"
#include "support/synthetic_model.h"
#include "support/test_data.h"

namespace verbatim::test {

/// Packs a model with two threads.
inline Container pack(const std::filesystem::path& model, const std::filesystem::path& target,
                      const std::vector<std::string>& formats, int threads = 2,
                      size_t alignment = kPageAlignment) {
  ThreadTeam team(threads);
  PackModelOptions options;
  set_formats(options.load, formats);
  options.alignment = alignment;
  return *pack_model(open_checkpoint(model), target, options, team);
}

/// A model so small that its container fits into a fuzzer's input.
inline TinyModelOptions smallest_model() {
  TinyModelOptions options;
  options.hidden_size = 16;
  options.intermediate_size = 8;
  options.layers = 1;
  options.heads = 1;
  options.kv_heads = 1;
  options.head_dim = 4;
  options.vocab_size = 16;
  options.tied = true;
  return options;
}

/// The bytes of its container, planes as close together as they may be.
inline std::string small_container(const std::vector<std::string>& formats, DType dtype = DType::kBF16) {
  const TemporaryFolder folder;
  TinyModelOptions model = smallest_model();
  model.dtype = dtype;
  write_tiny_llama(folder.path() / "model", model);
  pack(folder.path() / "model", folder.path() / "model.vbt", formats, 1, kLeastAlignment);
  return read_file(folder.path() / "model.vbt");
}

}  // namespace verbatim::test
