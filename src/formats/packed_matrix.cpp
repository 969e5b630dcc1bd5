#include "formats/packed_matrix.h"

#include "base/error.h"
#include "base/matrix.h"
#include "formats/bsfp.h"
#include "formats/int4.h"
#include "formats/int8.h"
#include "formats/k_quants.h"
#include "formats/mxbf16.h"
#include "formats/mxfp4.h"
#include "formats/panels.h"
#include "formats/q8_0.h"
#include "formats/squeeze.h"

namespace verbatim {

int64_t PackedMatrix::bytes() const {
  size_t sum = 0;
  for (const Plane& plane : planes) sum += plane.size();
  return static_cast<int64_t>(sum);
}

const FormatOperations& operations(Format format) {
  switch (format) {
    case Format::kBf16:
      return bf16_operations();
    case Format::kF16:
      return f16_operations();
    case Format::kF32:
      return f32_operations();
    case Format::kInt8:
      return int8_operations();
    case Format::kInt4:
      return int4_operations();
    case Format::kInt4Asymmetric:
      return int4_asymmetric_operations();
    case Format::kMxfp4:
      return mxfp4_operations();
    case Format::kBsfp:
      return bsfp_operations();
    case Format::kMxbf16:
      return mxbf16_operations();
    case Format::kSqueeze3:
      return squeeze3_operations();
    case Format::kSqueeze4:
      return squeeze4_operations();
    case Format::kQ8_0:
      return q8_0_operations();
    case Format::kKQuants:
      return k_quants_operations();
  }
  fail(ErrorKind::kUsage, "unknown format");
}

void check_plane(const PackedMatrix& matrix, int index, size_t bytes) {
  const auto position = static_cast<size_t>(index);
  if (position >= matrix.planes.size()) {
    bad_input("a matrix in {} lacks its plane {}", format_name(matrix.format), index);
  }
  if (matrix.planes[position].size() != bytes) {
    bad_input("plane {} of a matrix in {} has {} bytes where {} are needed", index,
              format_name(matrix.format), matrix.planes[position].size(), bytes);
  }
}

PackedMatrix make_matrix(Format format, int64_t columns, int64_t k) {
  PackedMatrix matrix;
  matrix.format = format;
  matrix.columns = round_up(columns, kPanelWidth);
  matrix.k = round_up(k, kInnerStep);
  return matrix;
}

}  // namespace verbatim
