#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace verbatim {

/// A layer of an enlarged model: a layer of the model, or a copy of it that adds nothing to the residual
/// stream.
struct InflatedLayer {
  int32_t source = 0;
  bool adds_nothing = false;
  friend bool operator==(const InflatedLayer&, const InflatedLayer&) = default;
};

/// The layers of a model in order, with copies spread evenly among them, each after its source.
std::vector<InflatedLayer> inflated_layers(int32_t layers, int32_t depth);

/// The config.json of the enlarged model, made from `config_json` of the checkpoint: the sizes are changed,
/// all other fields stay, and kInflatedKey says which model it was made from.
std::string inflated_config(std::string_view config_json, const Checkpoint& checkpoint, int32_t width,
                            const std::vector<InflatedLayer>& layers);

/// The README.md of the enlarged model.
std::string inflated_readme(const Checkpoint& checkpoint, int32_t width, int32_t depth);

}  // namespace verbatim
