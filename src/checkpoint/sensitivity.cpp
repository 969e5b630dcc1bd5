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

/// Whether every number of a tensor is 0, or −0.
bool all_zero(const TensorView& tensor) {
  const size_t size = tensor.dtype == DType::kF32                                   ? 4
                      : tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16 ? 2
                                                                                    : 1;
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    const bool has_sign = size > 1 && i % size == size - 1;
    if ((tensor.data[i] & (has_sign ? std::byte{0x7f} : std::byte{0xff})) != std::byte{0}) return false;
  }
  return true;
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
  if (!result.tensors.empty() &&
      std::ranges::all_of(result.tensors, [](const auto& tensor) { return all_zero(tensor.second); })) {
    bad_input(
        "{}: every sensitivity is 0, so that no weight is more sensitive than another; make the file anew",
        path.string());
  }
  result.metadata = safetensors_metadata(result.file->bytes(), path.string());
  return result;
}

}  // namespace verbatim
