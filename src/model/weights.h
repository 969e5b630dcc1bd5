#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/sensitivity.h"
#include "formats/linear.h"
#include "formats/sparse_split.h"

namespace verbatim {

/// The matrices of one expert.
struct ExpertWeights {
  LinearWeight gate_up;  ///< the gate matrix and the up matrix, one below the other
  LinearWeight down;
  Buffer<float> gate_up_bias = {};  ///< empty without biases, as the next
  Buffer<float> down_bias = {};
};

/// The weights of one transformer layer. Matrices that read the same input are packed as one.
struct LayerWeights {
  // The norms before and after the two parts of the layer; those that the model does not have are empty
  // (ModelConfig::block_norms), and so are biases of norms other than LayerNorms.
  Buffer<float> attention_norm;
  Buffer<float> attention_norm_bias = {};
  Buffer<float> attention_end_norm;
  Buffer<float> mlp_norm;
  Buffer<float> mlp_norm_bias = {};
  Buffer<float> mlp_end_norm;
  LinearWeight qkv;        ///< the query, key and value matrices, one below the other
  Buffer<float> qkv_bias;  ///< empty without biases
  Buffer<float>
      query_norm;  ///< the norm of queries before rotation; empty without one (ModelConfig::head_norm)
  Buffer<float> key_norm;  ///< the norm of keys before rotation; empty without one
  LinearWeight output;
  Buffer<float> output_bias;  ///< empty without a bias
  Buffer<float> head_sinks;   ///< [heads]; empty without sinks
  // The feed-forward part: two matrices, or else the router and the experts that it chooses from.
  LinearWeight gate_up;  ///< the gate matrix and the up matrix, one below the other, or the up matrix alone
  LinearWeight down;
  Buffer<float> gate_up_bias = {};  ///< empty without biases, as the next
  Buffer<float> down_bias = {};
  Buffer<float> router;       ///< [experts][hidden]
  Buffer<float> router_bias;  ///< empty without a bias
  std::vector<ExpertWeights> experts;
  // The order of each matrix's inputs, in models prepared with Atom: see packed_inputs().
  Buffer<float> qkv_order = {};
  Buffer<float> output_order = {};
  Buffer<float> gate_up_order = {};
  Buffer<float> down_order = {};
};

/// All weights of a decoder.
struct DecoderWeights {
  TensorView embedding;                                 ///< in the mapped file, where rows are looked up
  std::vector<std::shared_ptr<const MemoryMap>> files;  ///< the mapped files, kept as long as the weights
  std::vector<LayerWeights> layers;
  Buffer<float> positions = {};  ///< [context][hidden]: learned vectors of positions; empty without them
  Buffer<float> final_norm;
  Buffer<float> final_norm_bias = {};  ///< empty unless it is a LayerNorm
  LinearWeight head;                   ///< the output matrix, packed from the embedding when the two are tied
  Buffer<float> head_order = {};
};

/// Calls visit(matrix) on every matrix of a layer that a pass may multiply with, in the order of their specs.
template <typename Visit>
void each_matrix(const LayerWeights& layer, Visit&& visit) {
  visit(layer.qkv);
  visit(layer.output);
  if (layer.experts.empty()) {
    visit(layer.gate_up);
    visit(layer.down);
  }
  for (const ExpertWeights& expert : layer.experts) {
    visit(expert.gate_up);
    visit(expert.down);
  }
}

/// Calls visit(matrix) on every matrix that a pass may multiply with, the output matrix last.
template <typename Visit>
void each_matrix(const DecoderWeights& weights, Visit&& visit) {
  for (const LayerWeights& layer : weights.layers) each_matrix(layer, visit);
  visit(weights.head);
}

/// The part of a packed matrix or vector that one tensor of the checkpoint makes: some of the matrix's
/// columns, or a piece of the vector.
struct WeightPart {
  std::string tensor;
  int64_t rows = 0;
  bool interleaved = false;  ///< rotated pairs of a head are neighbours, and must be brought into two halves
  int64_t first = 0;         ///< the first of these rows in the tensor
  int64_t tensor_rows = 0;   ///< the number of rows of the tensor; 0: those of the part
  int64_t step = 1;          ///< every so many rows of the tensor one belongs to the part
  bool of_matrix = false;    ///< of a vector: the part is row `first` of a matrix
};

/// A matrix of the decoder: its name, its number of inputs and the tensors that it is made of.
struct MatrixSpec {
  std::string name;  ///< "layers.3.gate_up"
  int64_t k = 0;
  std::vector<WeightPart> parts;
  int64_t columns() const;
};
/// A vector of the decoder, in floats: its name and the tensors that it is made of. The router of a mixture
/// of experts is one, row after row.
struct VectorSpec {
  std::string name;  ///< "layers.3.mlp_norm"
  std::vector<WeightPart> parts;
  float added = 0.0f;  ///< is added to every number that the tensors hold
  int64_t length() const;
};

/// The number of inputs of every matrix, those with the largest mean squares, that Atom keeps in eight bits.
inline constexpr int64_t kOutlierInputs = 128;
/// The number of inputs of a matrix as it is packed. It is `inputs`, except in models prepared with Atom.
/// There a vector beside the matrix gives the order of the packed inputs: for each place the index of the
/// model's input, or -1 for none. The last 2 · kOutlierInputs places hold the outliers twice, because a
/// weight of eight bits is stored as two weights of four bits: 16 · the first, in the first half of these
/// places, plus the second, in the second half.
int64_t packed_inputs(const ModelConfig& config, int64_t inputs);

/// All matrices of a decoder: those of the layers, in order, then the output matrix.
std::vector<MatrixSpec> matrix_specs(const ModelConfig& config);
/// All vectors of a decoder: those of the layers, in order, then all others.
std::vector<VectorSpec> vector_specs(const ModelConfig& config);
/// The layers of a decoder before their weights are there, each with as many experts as it has.
std::vector<LayerWeights> empty_layers(const ModelConfig& config);
/// The matrix with a name (MatrixSpec); `weights.layers` must have its size (empty_layers()). Throws
/// Error(kUsage) for an unknown name.
LinearWeight& matrix_of(DecoderWeights& weights, const std::string& name);
/// The vector with a name (VectorSpec); `weights.layers` must have its size. Throws Error(kUsage) for an
/// unknown name.
Buffer<float>& vector_of(DecoderWeights& weights, const std::string& name);

/// The name of the vector with the order of a matrix's inputs, in models prepared with Atom.
std::string order_name(const std::string& matrix);
/// The number of the model's inputs of the matrix that an order vector belongs to; nothing for other vectors.
std::optional<int64_t> ordered_inputs(const ModelConfig& config, const std::string& vector);

/// Makes other rows of the rows of a matrix of columns × k, and of its sensitivities or an empty function.
/// The rows that it returns may be read from several threads and more than once, as long as those that it was
/// given; reading them must not throw.
using MatrixTransform = std::function<MatrixRows(int64_t columns, int64_t k, const MatrixRows& weights,
                                                 const MatrixRows& sensitivities, ThreadTeam& team)>;

struct LoadOptions {
  /// The formats to pack every matrix into. nullopt stands for the format of the matrix's own type, `bf16`,
  /// `f16`, `q8_0` (Q8_0, Q4_0, Q5_0 and IQ4_NL of GGUF), `k-quants` (Q2_K to Q6_K), `mxfp4` (MXFP4) or else
  /// `f32`, and so does an empty list.
  std::vector<std::optional<Format>> formats;
  /// Whether a matrix that has no reading to draft with in these formats (draft_reading()) is packed into
  /// `mxfp4` too.
  bool draft = false;
  SparseFractions sparse;  ///< for `squeeze3` and `squeeze4`: the size of the sparse part
  /// For `squeeze3` and `squeeze4`: the magnitudes above which weights are kept apart, by the name of the
  /// matrix, in place of sparse.outliers (outlier_magnitudes()). Empty: that share of every matrix.
  std::map<std::string, float> outlier_magnitudes = {};
  const SensitivityFile* sensitivities = nullptr;  ///< for `squeeze3` and `squeeze4`; or null
  /// Makes the rows that are packed of those of a matrix, as a quantizer without a format of its own would,
  /// for comparisons. Empty: no change.
  MatrixTransform transform = {};
  /// Called repeatedly while packing, with the fraction done, on the loading thread.
  std::function<void(double)> progress;
};

/// Sets the formats of `options` by their names, "full" for that of a matrix's own type and "draft" for
/// LoadOptions::draft. Throws Error(kBadInput) for an unknown name.
void set_formats(LoadOptions& options, const std::vector<std::string>& names);

/// The place of an output column of a matrix in files whose rows are in the order of Hugging Face models, as
/// files of sensitivities are: the part that it belongs to and the row of that part's tensor.
struct TensorRow {
  const WeightPart* part;
  int64_t row;
};
/// Finds the place of output column `column` of a matrix, whose parts the result refers to.
TensorRow hugging_face_row(const ModelConfig& config, const MatrixSpec& spec, int64_t column);
/// The number of rows of the tensor that a part is in.
int64_t rows_in_file(const WeightPart& part);

/// Makes a function that reads the rows of a matrix as floats, in the engine's order. It refers to the
/// checkpoint and to the spec. Throws Error(kBadInput) unless every tensor is there in the right shape.
MatrixRows matrix_rows(const Checkpoint& checkpoint, const MatrixSpec& spec);

/// Makes a function that reads the sensitivities of a matrix's weights, in the engine's order. It refers to
/// the file and to the spec. Empty if the matrix is the output matrix and the file has none of it, whose
/// weights are alike then. Throws Error(kBadInput) unless every other tensor is there in the right shape.
MatrixRows sensitivity_rows(const ModelConfig& config, const SensitivityFile& file, const MatrixSpec& spec);

/// Packs one matrix. Adds the names of its tensors that hold NaN or infinity to `not_finite`. Throws
/// Error(kBadInput) unless every tensor is there in the right shape, and of a type that the formats can hold.
LinearWeight pack_matrix(const Checkpoint& checkpoint, const MatrixSpec& spec, const LoadOptions& options,
                         ThreadTeam& team, std::vector<std::string>& not_finite);
/// Reads one vector, padded with zeros to the step of the kernels. Adds the names of its tensors that hold
/// NaN or infinity to `not_finite`.
Buffer<float> read_vector(const Checkpoint& checkpoint, const VectorSpec& spec,
                          std::vector<std::string>& not_finite);
/// The warning, in one line, that tensors of the given names hold NaN or infinity; nothing for no names.
std::vector<std::string> not_finite_warning(std::span<const std::string> tensors);
/// The embedding of a checkpoint.
TensorView embedding_of(const Checkpoint& checkpoint);

/// The number of bits that a pass in the given reading reads of the matrices, per weight. Throws
/// Error(kUsage) if a matrix has no store for the reading.
double bits_per_weight(const DecoderWeights& weights, Reading reading);

/// Packs all weights of a checkpoint. Adds the names of tensors that hold NaN or infinity to `not_finite`.
DecoderWeights pack_weights(const Checkpoint& checkpoint, const LoadOptions& options, ThreadTeam& team,
                            std::vector<std::string>& not_finite);

}  // namespace verbatim
