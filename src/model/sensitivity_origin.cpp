#include "model/sensitivity_origin.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"
#include "model/weight_sketch.h"

namespace verbatim {

std::string sketch_text(const Checkpoint& checkpoint) {
  return nlohmann::json(weight_sketch(checkpoint)).dump();
}

void require_same_model(const Checkpoint& checkpoint, const SensitivityFile& sensitivities) {
  if (!sensitivities.metadata.contains(kWeightSketch)) return;
  require_same_model(checkpoint.path, weight_sketch(checkpoint), sensitivities);
}

void require_same_model(const std::filesystem::path& model, std::span<const float> sketch,
                        const SensitivityFile& sensitivities) {
  const auto found = sensitivities.metadata.find(kWeightSketch);
  if (found == sensitivities.metadata.end()) return;
  std::vector<float> theirs;
  for (const nlohmann::json& weight : parse_json(found->second, 1, sensitivities.path.string())) {
    if (weight.is_number()) theirs.push_back(weight.get<float>());
  }
  const double alike = likeness(sketch, theirs);
  if (!(alike >= kSameModel)) {  // NaN too
    bad_input(
        "{} holds the sensitivities of another model: of 256 weights of {} that it names, the likeness is "
        "{:.2f}; make the file from the same model",
        sensitivities.path.string(), model.string(), alike);
  }
}

}  // namespace verbatim
