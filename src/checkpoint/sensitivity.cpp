#include "checkpoint/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/layout.h"
#include "checkpoint/safetensors.h"

namespace verbatim {

namespace {

void check_values(const TensorView& view, const std::string& name, const std::string& where) {
  std::vector<float> row(static_cast<size_t>(view.columns()));
  for (int64_t r = 0; r < view.rows(); ++r) {
    view.read_row(r, row);
    const auto bad =
        std::find_if(row.begin(), row.end(), [](float s) { return !(s >= 0.0f) || std::isinf(s); });
    if (bad != row.end()) {
      bad_input(
          "{}: tensor {} holds {} in row {}, but squared gradients are finite and not negative; store "
          "their squares, in F32 if they overflow",
          where, printable(name), *bad, r);
    }
  }
}

/// Whether every number is 0.
bool all_zero(const std::map<std::string, TensorView>& tensors) {
  return std::ranges::all_of(tensors, [](const auto& tensor) {
    return std::ranges::all_of(tensor.second.data, [](std::byte byte) { return byte == std::byte{0}; });
  });
}

}  // namespace

const TensorView& SensitivityFile::tensor(const std::string& name, std::span<const int64_t> shape) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    bad_input("{}: holds no sensitivities for the model's tensor {}; make the file from the same model",
              path.string(), printable(name));
  }
  const TensorView& view = found->second;
  if (!std::equal(view.shape.begin(), view.shape.end(), shape.begin(), shape.end())) {
    bad_input("{}: tensor {} has the shape {}, but the model's has {}; make the file from the same model",
              path.string(), printable(name), shape_text(view.shape), shape_text(shape));
  }
  check_values(view, name, path.string());
  return view;
}

SensitivityFile open_sensitivities(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    bad_input("{} is a folder; give the .safetensors file of sensitivities", path.string());
  SensitivityFile result;
  result.path = path;
  result.file = std::make_shared<const MemoryMap>(path);
  result.tensors = parse_safetensors(result.file->bytes(), path.string());
  if (!result.tensors.empty() && all_zero(result.tensors)) {
    bad_input(
        "{}: every sensitivity is 0, so that no weight is more sensitive than another; make the file anew",
        path.string());
  }
  result.metadata = safetensors_metadata(result.file->bytes(), path.string());
  return result;
}

}  // namespace verbatim
