#include "verbatim/weights.h"

#include <algorithm>

#include "base/processors.h"
#include "engine/model_access.h"
#include "model/work.h"
#include "speculation/stores.h"

namespace verbatim {

std::vector<std::string> needed_formats(const std::filesystem::path& model, const Recipe& recipe) {
  ThreadTeam team(hardware_threads());
  return formats_for_machine({&recipe, 1}, weight_source(model), ModelRole::kTarget, team);
}

int64_t weight_bytes(const Model& model, const std::vector<std::string>& formats) {
  int64_t sum = 0;
  each_matrix(data_of(model).decoder.weights(), [&](const LinearWeight& weight) {
    if (formats.empty()) {
      for (const PackedMatrix& store : weight.stores) sum += store.bytes();
    }
    std::vector<const PackedMatrix*> counted;
    for (const std::string& name : formats) {
      if (name == "draft" && !draft_reading(weight)) continue;
      const bool any = name == "full" || name == "draft";
      const PackedMatrix* const store =
          any ? &weight.store(parse_reading(name, "a format")) : weight.find(parse_format(name, "a format"));
      if (store == nullptr || std::find(counted.begin(), counted.end(), store) != counted.end()) continue;
      counted.push_back(store);
      sum += store->bytes();
    }
  });
  return sum;
}

std::string resolved_reading(const Model& model, std::string_view reading) {
  const Reading parsed = parse_reading(reading, "a reading");
  return std::string(reading_name(data_of(model).decoder.weights().head.resolve(parsed)));
}

double flops_per_token(const Model& model) {
  return flops_per_row(data_of(model).decoder);
}

}  // namespace verbatim
