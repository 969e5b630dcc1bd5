#pragma once

#include <functional>
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

/// The weights of one transformer layer. Matrices that read the same input are packed as one.
struct LayerWeights {
  Buffer<float> attention_norm;
  LinearWeight qkv;        ///< queries, keys and values, one below the other
  Buffer<float> qkv_bias;  ///< empty without biases
  LinearWeight output;
  Buffer<float> mlp_norm;
  LinearWeight gate_up;  ///< gate, then up
  LinearWeight down;
  /// Where each matrix has its inputs in an order of its own: see packed_inputs().
  Buffer<float> qkv_order = {};
  Buffer<float> output_order = {};
  Buffer<float> gate_up_order = {};
  Buffer<float> down_order = {};
};

struct DecoderWeights {
  TensorView embedding;                                 ///< rows are looked up in the mapped file
  std::vector<std::shared_ptr<const MemoryMap>> files;  ///< what is mapped from them
  std::vector<LayerWeights> layers;
  Buffer<float> final_norm;
  LinearWeight head;  ///< the output matrix, packed from the embedding when the two are tied
  Buffer<float> head_order = {};
};

/// Calls visit(matrix) on every matrix that a pass multiplies with, the output matrix last.
template <typename Visit>
void each_matrix(const DecoderWeights& weights, Visit&& visit) {
  for (const LayerWeights& layer : weights.layers) {
    visit(layer.qkv);
    visit(layer.output);
    visit(layer.gate_up);
    visit(layer.down);
  }
  visit(weights.head);
}

/// A tensor of the checkpoint as a run of columns of a packed matrix, or as a piece of a packed vector.
struct WeightPart {
  std::string tensor;
  int64_t rows = 0;
  bool interleaved = false;  ///< its heads' rows are in rotation pairs and must be brought into halves
};

/// A matrix of the decoder: what it is made of and where it goes.
struct MatrixSpec {
  std::string name;  ///< "layers.3.gate_up"
  int64_t k = 0;
  std::vector<WeightPart> parts;
  int64_t columns() const;
};
/// A vector of the decoder, in floats.
struct VectorSpec {
  std::string name;  ///< "layers.3.mlp_norm"
  std::vector<WeightPart> parts;
  int64_t length() const;
};

/// So many inputs of every matrix, those with the largest squares, Atom keeps in eight bits.
inline constexpr int64_t kOutlierInputs = 128;
/// The inputs that a matrix has as it is packed. Atom's come in the order of a vector beside the matrix, of
/// as many numbers: whole ones, which input of the model stands there, or -1 for none. The last
/// 2 · kOutlierInputs places are the outliers twice, because a weight of eight bits is two of four: 16 · one
/// in the first half and one in the second.
int64_t packed_inputs(const ModelConfig& config, int64_t inputs);

/// All matrices and all vectors of a decoder, the layers in order, those outside them last.
std::vector<MatrixSpec> matrix_specs(const ModelConfig& config);
std::vector<VectorSpec> vector_specs(const ModelConfig& config);
/// Where the weights of the given names are; `weights.layers` must have its size. Throws Error(kUsage) for an
/// unknown name.
LinearWeight& matrix_of(DecoderWeights& weights, const std::string& name);
Buffer<float>& vector_of(DecoderWeights& weights, const std::string& name);

/// For every matrix the name of its order, where Atom's scheme wants one.
std::string order_name(const std::string& matrix);
/// The inputs of the matrix that an order belongs to, as the model has them; nothing for other vectors.
std::optional<int64_t> ordered_inputs(const ModelConfig& config, const std::string& vector);

/// Formats from their names; "full" is nullopt. Throws Error(kBadInput) for an unknown name.
std::vector<std::optional<Format>> parse_formats(const std::vector<std::string>& names);

struct LoadOptions {
  /// What to pack every matrix into; nothing: its own type, `bf16`, `f16` or else `f32`. So does nullopt
  /// among them.
  std::vector<std::optional<Format>> formats;
  SparseFractions sparse;                          ///< for `squeeze3` and `squeeze4`
  const SensitivityFile* sensitivities = nullptr;  ///< likewise
  /// For comparisons: changes the weights of an output column before they are packed, as a quantizer that is
  /// no format would. Called from several threads and more than once for a column; must not throw. Empty:
  /// none.
  std::function<void(std::span<float>)> transform = {};
  /// Called now and then while packing with the fraction done, on the loading thread.
  std::function<void(double)> progress;
};

/// The rows of a matrix as floats, in the engine's order. Every tensor must be there in the right shape
/// (Error(kBadInput) otherwise). Refers to the checkpoint and to the spec.
MatrixRows matrix_rows(const Checkpoint& checkpoint, const MatrixSpec& spec);

/// Packs one matrix. Every tensor must be there in the right shape, and of a type that the formats can hold
/// (Error(kBadInput) otherwise). Tensors that hold NaN or infinity are named in `warnings`.
LinearWeight pack_matrix(const Checkpoint& checkpoint, const MatrixSpec& spec, const LoadOptions& options,
                         ThreadTeam& team, std::vector<std::string>& warnings);
/// Reads one vector, padded with zeros so that kernels may read whole steps.
Buffer<float> read_vector(const Checkpoint& checkpoint, const VectorSpec& spec,
                          std::vector<std::string>& warnings);
/// The embedding, from the checkpoint.
TensorView embedding_of(const Checkpoint& checkpoint);

/// Bits that a pass in the given reading reads of the matrices, per weight. Throws Error(kUsage) when they
/// were packed without the reading's format.
double bits_per_weight(const DecoderWeights& weights, Reading reading);

/// Packs a whole checkpoint.
DecoderWeights pack_weights(const Checkpoint& checkpoint, const LoadOptions& options, ThreadTeam& team,
                            std::vector<std::string>& warnings);

}  // namespace verbatim
