#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "verbatim/model.h"
#include "verbatim/recipe.h"

namespace verbatim {

// Facts about the weights of models, for programs that compare recipes.

/// The names of the formats that Model::load() takes of a model, which is opened for this but not packed, to
/// decode by a recipe on this machine, with all threads. Where a planned recipe has a choice of stores,
/// products with them are measured, for up to two seconds, unless that was done before. No names at all stand
/// for everything that a packed file holds. Throws Error(kBadInput) when the model is malformed, and
/// Error(kUsage) when the recipe runs models of another quantization scheme.
std::vector<std::string> needed_formats(const std::filesystem::path& model, const Recipe& recipe);

/// The bytes that the matrices of a loaded model take in some formats, by name; "full" is the store that the
/// full reading reads, "draft" the one that a matrix drafts with, and a store counts once. Formats that the
/// model was loaded without add nothing. No names at all stand for every format that the model was loaded
/// with. The embedding and the vectors do not count. Throws Error(kBadInput) for an unknown name.
int64_t weight_bytes(const Model& model, const std::vector<std::string>& formats = {});

/// The name of the reading that another one means for a loaded model: "bf16" for "full" of a model in BF16;
/// any reading but "full" and "draft" means itself. Two recipes that verify in the same reading give the same
/// bytes. Throws Error(kBadInput) for an unknown name, and Error(kUsage) when the model was loaded without
/// the format of the reading.
std::string resolved_reading(const Model& model, std::string_view reading);

/// The floating-point operations that the products of one token with all matrices of a model take, the output
/// matrix included, although most tokens of a prompt do without that one.
double flops_per_token(const Model& model);

}  // namespace verbatim
