#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_writer.h"
#include "prepare/convert.h"

namespace verbatim {

/// A tensor of a converted model and how it follows from those of the original.
struct ConvertedTensor {
  TensorEntry entry;
  std::vector<TensorView>
      sources;              ///< one, or several whose rows follow one another, as those of all experts
  std::string source_name;  ///< of the first of them
  /// Whether GGUF files have it in F32 whatever it was in (is_small()).
  bool small = false;
  std::vector<float> values = {};  ///< in F32, for a tensor that follows from the config alone
  enum class Rows {
    kStay,
    kInterleave,  ///< of the two halves of a head neighbours become pairs
    kSeparate,    ///< the inverse
    kEven,        ///< every second row alone, from the first on
    kOdd,         ///< the others alone
    kTakeTurns,   ///< sources come in pairs, whose rows take turns
  };
  Rows rows = Rows::kStay;
  int64_t head_rows = 0;  ///< the rows of a head, of which kInterleave and kSeparate speak
  float added = 0.0f;     ///< what is added to every weight: 1 or -1 for norms that are stored less 1
  enum class Part { kAll, kMxfp4Codes, kMxfp4Scales };
  Part part = Part::kAll;  ///< what of the sources, for MXFP4 whose scales are to be apart
  bool turned = false;  ///< whether the result has a row for each column, as matrices of a GPT-2 in a folder
};

/// Refuses families that GGUF has no architecture for, by name.
void require_convertible(const Checkpoint& checkpoint);

/// Refuses a tensor of a folder whose type GGUF does not have.
void require_gguf_type(const std::string& name, const TensorView& tensor, const Checkpoint& checkpoint);

/// Refuses a tensor in blocks, which folders do not have, unless it is to be widened.
void require_folder_type(const std::string& name, const TensorView& tensor, const Checkpoint& checkpoint,
                         const ConvertModelOptions& options);

/// The name in a GGUF file of a tensor with a Hugging Face name; for a tensor of an expert, that of the stack
/// of all experts' tensors. Throws Error(kBadInput), naming the tensor, if there is none.
std::string gguf_name_of(const std::string& name, const Checkpoint& checkpoint);

/// Whether GGUF files have a tensor in F32 whatever it was in: vectors, routers and learned positions.
bool is_small(const std::string& name, const TensorView& tensor, const Checkpoint& checkpoint);

/// Sets the rows of a query or key matrix for the layout of `interleaved`, and what is added to a norm.
void set_layout(ConvertedTensor& tensor, const Checkpoint& checkpoint, bool interleaved, bool norms_less_one);

/// Whether a type holds a number exactly.
bool holds(DType dtype, float value);

/// Writes the bytes of all tensors in order. Returns false if the work was cancelled.
bool write_converted(const Checkpoint& checkpoint, std::span<const ConvertedTensor> tensors,
                     const std::function<void(std::span<const std::byte>)>& write,
                     const ConvertModelOptions& options, ConvertedModel& result);

/// Whether a tensor is in F32 and a type of 16 bits holds all of its numbers, less what is added.
bool fits(const ConvertedTensor& tensor, DType dtype);

/// Checks that the converted model is the original. Throws Error(kBadInput), naming the first field of its
/// config that `format` cannot state.
void require_same_config(const Checkpoint& original, const ModelConfig& converted, const char* format);

}  // namespace verbatim
