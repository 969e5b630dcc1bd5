#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/float16.h"
#include "base/memory_map.h"
#include "checkpoint/model_config.h"
#include "kernels/kernel_table.h"

namespace verbatim {

struct KQuantBlock;  // formats/packed_matrix.h

/// Element types of stored tensors. Those from kQ4_0 to kMXFP4 are of GGUF files only and have their elements
/// in blocks (gguf_blocks.h).
enum class DType {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  // Of safetensors files only:
  kU8,          ///< bytes, which are no weights by themselves
  kMXFP4Apart,  ///< MXFP4 whose scales are apart: pairs of codes, the first in the lower half of a byte
};
/// The number of the types up to kMXFP4, which GGUF files know.
inline constexpr int kDTypeCount = 21;

/// "F32", "Q4_K", ...
std::string dtype_name(DType dtype);

/// The bytes that `elements` elements of a type occupy, a multiple of the elements in a block of that type.
size_t dtype_bytes(DType dtype, size_t elements);

/// A tensor inside a mapped file. Shapes are in the row-major sense of PyTorch whatever the file's
/// convention: a linear layer's weight is {outputs, inputs}.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  ///< exactly the tensor's bytes; may be unaligned
  /// For kMXFP4Apart: the scales, a byte for every 32 elements of a row, row after row.
  std::span<const std::byte> scales = {};
  /// Whether the bytes have a row of the file for each column, as matrices of a GPT-2 in safetensors. Such a
  /// tensor has two dimensions and is in F32, F16 or BF16.
  bool transposed = false;

  /// The number of elements in a row (the last dimension).
  int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const;
  /// Converts row r to float: exactly, or for block types with the arithmetic that defines the type
  /// (gguf_blocks.h). `out` has columns() elements.
  void read_row(int64_t r, std::span<float> out) const;
  /// Whether every element is a code of eight bits times an F16 scale that 32 elements share: whether
  /// read_codes() may be called.
  bool has_codes() const;
  /// Reads the codes of row r, columns() of them, and their scales, one for every 32 codes. Their products
  /// are what read_row() gives.
  void read_codes(int64_t r, std::span<int8_t> codes, std::span<Float16> scales) const;
  /// The shape of the blocks that the format `k-quants` keeps as they are; nothing for other types.
  std::optional<BlockShape> block_shape() const;
  /// Reads the blocks of row r, columns() / 256 of them, of a tensor that has a block_shape().
  void read_blocks(int64_t r, std::span<KQuantBlock> blocks) const;
};

/// The place of a checkpoint's vocabulary, from which src/text/ loads it.
struct TokenizerSource {
  enum class Kind { kNone, kSentencePieceModel, kTokenizerJson, kGguf };
  Kind kind = Kind::kNone;
  std::filesystem::path path;  ///< the file: tokenizer.model, tokenizer.json or the .gguf
  /// For a vocabulary inside a packed file, which `path` then names: the contents of the vocabulary's files,
  /// by name, owned by the mapping of the packed file. Empty otherwise.
  std::map<std::string, std::string_view> embedded = {};
};

/// A model's folder or file, mapped and checked but not yet packed. Tensors have their Hugging Face names
/// ("model.layers.0.self_attn.q_proj.weight"), whatever the file calls them.
struct Checkpoint {
  std::filesystem::path path;
  std::string format;  ///< "safetensors" or "gguf"; "vbt" for a packed file, which has no tensors
  ModelConfig config;
  std::map<std::string, TensorView> tensors;
  TokenizerSource tokenizer;
  std::vector<std::shared_ptr<const MemoryMap>> files;  ///< keep the tensors' bytes alive

  /// The tensor with a name, checked to have exactly this shape. Throws Error(kBadInput), naming the tensor,
  /// if it is missing or has another shape.
  const TensorView& tensor(const std::string& name, std::initializer_list<int64_t> shape) const;
  bool has(const std::string& name) const { return tensors.contains(name); }
};

/// The first bytes of a packed file (src/container/). As in PNG files, they reveal a file that some program
/// has converted as if it were text.
inline constexpr std::string_view kPackedMagic = "\x89VBT\r\n\x1a\n";
/// The name of the packed file in a folder that `verbatim quantize` makes.
inline constexpr const char* kPackedName = "model.vbt";
/// The packed file of a model: `path` itself, or the packed file in the folder `path` if that holds no other
/// model.
std::filesystem::path packed_file(const std::filesystem::path& path);
/// Whether packed_file() is a file that begins with kPackedMagic or whose name ends in .vbt. Never throws.
bool is_packed(const std::filesystem::path& path);

/// Opens a directory in Hugging Face layout or a .gguf file. Throws Error(kBadInput) for anything malformed
/// and for packed files, with the file, what is wrong in it and what to do.
Checkpoint open_checkpoint(const std::filesystem::path& path);

}  // namespace verbatim
