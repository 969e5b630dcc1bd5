#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace verbatim {

/// A tensor of a model that is not packed.
struct TensorReport {
  std::string name;            ///< as Hugging Face calls it, whatever the file does; it may hold any bytes
  std::string type;            ///< of its elements: "F32", "F16", "BF16", "Q8_0", "Q4_K", ...
  std::vector<int64_t> shape;  ///< {outputs, inputs} of a matrix; empty for a scalar
  int64_t bytes = 0;           ///< its size in the file
};

/// The tensors of one element type.
struct TensorGroup {
  int64_t count = 0;  ///< their number
  int64_t bytes = 0;  ///< their size in the files
  int64_t weights = 0;

  double bits_per_weight() const {
    return weights > 0 ? 8.0 * static_cast<double>(bytes) / static_cast<double>(weights) : 0.0;
  }
};

/// A plane of a packed file: a run of bytes with a checksum of its own.
struct PlaneReport {
  std::string name;       ///< for people: "plane 2 of layers.3.down in mxbf16"
  uint64_t offset = 0;    ///< of its first byte in the file
  uint64_t bytes = 0;     ///< its size
  uint64_t checksum = 0;  ///< the CRC-64 that the file states of it
};

/// The matrices of a packed file in one format.
struct StoredFormatReport {
  std::string format;    ///< its name, as format_names() has it
  int64_t matrices = 0;  ///< the matrices that are stored in it
  int64_t planes = 0;    ///< the planes that these take
  int64_t bytes = 0;     ///< the size of the planes, without the padding between them
  int64_t weights = 0;   ///< the weights of these matrices in the model, without padding

  /// The stored bits per weight of the model.
  double bits_per_weight() const;
};

/// What a matrix in `squeeze3` or `squeeze4` keeps apart from its tables: its sparse part (docs/formats.md).
struct SparsePartReport {
  std::string matrix;        ///< its name: "layers.3.down"
  std::string format;        ///< the name of the format
  int64_t weights = 0;       ///< the weights of the matrix, without padding
  int64_t bytes = 0;         ///< the size of all of its planes
  int64_t entries = 0;       ///< the weights that are kept apart
  int64_t columns = 0;       ///< the output columns of the matrix
  int64_t most_entries = 0;  ///< the entries of the column that has most
  int64_t fullest_entries =
      0;  ///< the entries of those hundredth of the columns, at least one, that have most
  /// The number of columns by their number of entries: none, 1, 2 and 3, 4 to 7, and so on by doubling.
  std::vector<int64_t> columns_by_entries;
  /// The sum of the sensitivities of all weights of the matrix, and of those that are kept apart; nothing
  /// without a file that has them.
  std::optional<double> sensitivity;
  std::optional<double> sparse_sensitivity;

  /// The stored bits per weight.
  double bits_per_weight() const;
};

/// A file of the vocabulary inside a packed file.
struct StoredFileReport {
  std::string name;  ///< it may hold any bytes
  int64_t bytes = 0;
};

/// The contents of a packed file, beside the description that every model has.
struct PackedReport {
  uint32_t version = 0;                     ///< of the file's layout
  std::string source;                       ///< the file format that was packed; it may hold any bytes
  std::string quantization;                 ///< "none", "rtn", "awq", "gptq", "atom" or "quarot"
  std::vector<StoredFormatReport> formats;  ///< in the order of the file
  std::vector<SparsePartReport> sparse;     ///< the sparse parts, in the order of the file
  std::string embedding_type;               ///< the element type of the embedding
  int64_t embedding_bytes = 0;
  int64_t vectors = 0;  ///< the number of vectors, all of them in F32
  int64_t vector_bytes = 0;
  std::vector<StoredFileReport> vocabulary_files;
  std::vector<std::string> warnings;  ///< the warnings of packing, a line each
  std::vector<PlaneReport> planes;    ///< all planes, in the order of the file's header
  bool verified = false;              ///< whether every plane was compared with its checksum
};

/// The vocabulary of a model.
struct VocabularyReport {
  std::string kind;            ///< "sentencepiece", "byte-level bpe", ...
  int32_t tokens = 0;          ///< the number of its tokens
  std::optional<int32_t> bos;  ///< the token that begins a sequence, if there is one
  std::optional<int32_t> eos;  ///< the token that ends a sequence, if there is one
  std::string chat_format;     ///< the name of the chat format that its special tokens belong to
};

/// The memory that a model will take, in bytes where nothing else is said, known before its weights are
/// packed.
struct MemoryEstimate {
  int64_t full = 0;     ///< the packed weights of the full reading
  int64_t weights = 0;  ///< the number of packed weights, padding of columns and inputs included
  int64_t pass = 0;  ///< the packed weights that a pass over one token reads: of a mixture of experts not all
  int64_t mxfp4 = 0;         ///< the MXFP4 weights beside them, for recipes that draft with these; may be 0
  int64_t kv_per_token = 0;  ///< keys and values of one token in BF16
  int64_t kv_context = 0;    ///< keys and values of a whole context in BF16
};

/// A model's files, sizes and settings, and the memory that it takes.
struct ModelReport {
  std::filesystem::path path;  ///< the folder or file that was opened
  std::string file_format;     ///< "safetensors", "gguf", or "vbt" for a packed file
  int64_t files = 0;           ///< the number of files that hold the weights
  int64_t file_bytes = 0;      ///< the size of these files
  std::string architecture;    ///< "llama", "mistral", "qwen2", ..., the family's model_type
  int64_t parameters = 0;      ///< the number of weights; an output matrix that is the embedding counts once
  int32_t layers = 0;
  int32_t hidden_size = 0;        ///< channels of the residual stream
  int32_t heads = 0;              ///< heads of queries
  int32_t kv_heads = 0;           ///< heads of keys and values
  int32_t head_dim = 0;           ///< channels of a head
  int32_t intermediate_size = 0;  ///< channels of the feed-forward part
  int32_t experts = 0;            ///< the experts of a layer that is a mixture of experts; 0: there are none
  int32_t experts_used = 0;       ///< the experts that a token goes through
  int32_t expert_intermediate_size = 0;  ///< channels of an expert
  std::vector<int32_t> dense_layers;     ///< the layers without experts, if others have some
  int32_t vocab_size = 0;                ///< rows of the embedding
  int32_t context = 0;                   ///< the longest sequence, in tokens
  int32_t rotary_dim = 0;                ///< channels of a head that are rotated
  float rope_theta = 0;                  ///< the base of the frequencies of rotary positions
  /// How rotary positions are scaled: "none", "linear", "llama3", "dynamic", "yarn" or "longrope"; or
  /// "factors" where the file states one factor per frequency.
  std::string rope_scaling;
  float rope_scaling_factor = 1;           ///< how many times longer the scaling makes the context
  int32_t rope_scaling_context = 0;        ///< the context before scaling, where `rope_scaling` uses one
  std::optional<int32_t> sliding_window;   ///< the positions that a position sees, itself included; none: all
  std::vector<int32_t> windowless_layers;  ///< the layers that have no such window
  std::vector<int32_t> unrotated_layers;   ///< the layers without rotary positions
  bool tied_embeddings = false;            ///< whether the output matrix is the embedding
  bool qkv_bias = false;                   ///< whether queries, keys and values have biases
  bool head_sinks = false;                 ///< whether each query head has a sink beside its positions
  /// The factors of the model that are not the usual ones: of "embedding", "residual", "attention", "logits".
  std::map<std::string, float> scales;
  std::string block_norms;  ///< where the norms of a layer's parts are: "before" or "after" them, or "both"
  bool layer_norm = false;  ///< whether the norms are LayerNorms with biases; otherwise RMS norms
  bool plain_mlp = false;   ///< whether the feed-forward part has an up matrix alone and no gate
  /// The function on the gate, or on the up matrix's outputs: "silu", "gelu_tanh", "clamped_silu" or "relu".
  std::string activation;
  bool learned_positions = false;  ///< whether positions are learned vectors, added to the embedding
  std::optional<float> score_cap;  ///< the soft cap of the scores of attention
  std::optional<float> logit_cap;  ///< the soft cap of the logits
  float window_rope_theta = 0;     ///< the theta of layers with a window, if they have their own; otherwise 0
  std::string head_norm;  ///< how queries and keys are normed before rotation: "none", "per head" or "whole"
  std::map<std::string, TensorGroup> types;    ///< the tensors by their type; none of a packed file
  std::vector<TensorReport> tensors;           ///< all tensors, sorted by name; none of a packed file
  std::optional<PackedReport> packed;          ///< of a packed file only
  std::optional<VocabularyReport> vocabulary;  ///< nothing where text cannot be encoded
  MemoryEstimate memory;
};

/// How a model is inspected.
struct InspectOptions {
  /// Compares the planes of a packed file with their checksums, which reads all of it.
  bool verify = false;
  /// A file of sensitivities, as PackOptions::sensitivities: how much of them is in the sparse parts of a
  /// packed file; empty: none.
  std::filesystem::path sensitivities = {};
  /// Called now and then while planes are compared with the fraction done, from 0 to 1.
  std::function<void(double)> progress = {};
  /// Asked now and then while planes are compared; true ends that, and PackedReport::verified stays false.
  std::function<bool()> cancelled = {};
};

/// Describes a directory in Hugging Face layout, a .gguf file or a packed .vbt file. It is opened and checked
/// as Model::load() does, but its weights are neither read nor packed; of sparse parts the places of the
/// weights are read.
///
/// Throws Error(kBadInput) when something is wrong with the files, a checksum among it, or when sensitivities
/// are another model's, and Error(kUsage) when a model is to be verified that is not packed, or sensitivities
/// are given where there is no sparse part.
ModelReport inspect_model(const std::filesystem::path& path, const InspectOptions& options = {});

}  // namespace verbatim
