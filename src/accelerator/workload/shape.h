#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::accelerator {

/// The matrices of a decoder, as its Hugging Face config.json has them.
struct Shape {
  std::string name;
  int64_t hidden = 0;
  int64_t intermediate = 0;  ///< of an expert, in a mixture of experts
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_size = 0;
  int64_t vocabulary = 0;
  bool gated = true;         ///< gate and up matrices, or an up matrix alone
  int64_t experts = 0;       ///< 0: no mixture
  int64_t experts_used = 0;  ///< by a row

  bool operator==(const Shape&) const = default;

  int64_t query_size() const { return heads * head_size; }
  int64_t kv_size() const { return kv_heads * head_size; }
  /// Weights of the matrices that a row is multiplied with, the output matrix among them.
  int64_t weights_of_row() const;
};

/// Reads a config.json. Throws Error(kBadInput), naming `where` and the field, for what is missing or odd.
Shape parse_config(std::string_view json, const std::string& where);

/// The shape of one of the paper's models by name ("llama2-13b"), or of a config.json, or of the one in a
/// folder. Throws Error(kBadInput).
Shape load_shape(const std::string& name_or_path);

/// The paper's five models, in the order of its tables.
const std::vector<Shape>& paper_shapes();

}  // namespace verbatim::accelerator
