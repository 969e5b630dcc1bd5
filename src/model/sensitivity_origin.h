#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "checkpoint/sensitivity.h"
#include "model/weights.h"

namespace verbatim {

// What a file of sensitivities says of its origin, in texts beside its tensors.

inline constexpr const char* kTextDigest = "text_sha256";  ///< SHA-256 of the text, in hexadecimal
inline constexpr const char* kSampleCount = "samples";     ///< the number of sequences
inline constexpr const char* kSampleLength = "length";     ///< tokens of a sequence
inline constexpr const char* kSampleSeed = "seed";         ///< the seed of their places
inline constexpr const char* kMeasure = "measure";         ///< what was averaged: "gradient" or "activation"
inline constexpr const char* kMeanLoss = "loss";           ///< mean loss per token of the sequences, in nats
inline constexpr const char* kWeightSketch = "weights";    ///< weight_sketch() of the model, as JSON numbers

/// Checks that sensitivities belong to a model, as far as their file says whose they are. Throws
/// Error(kBadInput) if they are those of a model with other weights.
void require_same_model(const Checkpoint& checkpoint, const SensitivityFile& sensitivities);

/// The same for a model of which there is a sketch, at `model`.
void require_same_model(const std::filesystem::path& model, std::span<const float> sketch,
                        const SensitivityFile& sensitivities);

/// The sketch of a model's weights as text.
std::string sketch_text(const Checkpoint& checkpoint);

}  // namespace verbatim
