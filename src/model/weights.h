#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "checkpoint/checkpoint.h"
#include "formats/linear.h"

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
};

struct DecoderWeights {
  TensorView embedding;                                 ///< rows are looked up in the mapped checkpoint
  std::vector<std::shared_ptr<const MemoryMap>> files;  ///< what the embedding is mapped from
  std::vector<LayerWeights> layers;
  Buffer<float> final_norm;
  LinearWeight head;  ///< the output matrix, packed from the embedding when the two are tied
};

struct LoadOptions {
  bool mxfp4 = false;  ///< also pack the MXFP4 draft
  /// Called now and then while packing with the fraction done, on the loading thread.
  std::function<void(double)> progress;
};

/// Packs a checkpoint's weights. Every tensor must be there in the right shape (Error(kBadInput) otherwise).
/// Tensors that hold NaN or infinity are named in `warnings`.
DecoderWeights pack_weights(const Checkpoint& checkpoint, const LoadOptions& options, ThreadTeam& team,
                            std::vector<std::string>& warnings);

}  // namespace verbatim
