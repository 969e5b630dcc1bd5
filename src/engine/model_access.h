#pragma once

#include "engine/model_data.h"
#include "verbatim/model.h"

namespace verbatim {

/// The library's own way to what a Model holds, which its public interface does not show.
struct ModelAccess {
  static const ModelData& data(const Model& model) { return *model.data_; }
};

/// The data of a model, which live as long as any copy of the model.
inline const ModelData& data_of(const Model& model) {
  return ModelAccess::data(model);
}

}  // namespace verbatim
