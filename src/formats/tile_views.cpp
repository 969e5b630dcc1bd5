#include "formats/tile_views.h"

#include "base/error.h"
#include "formats/escaped_weights.h"
#include "formats/tile_codes.h"

namespace verbatim {

namespace {

const uint8_t* bytes_of(const PackedMatrix& matrix, int plane) {
  return matrix.plane(plane).as<const uint8_t>();
}

}  // namespace

TileView tile_view(const PackedMatrix& matrix, Reading reading) {
  TileView view{};
  view.panels.tiles = matrix.tiles();
  view.panels.codes = bytes_of(matrix, 0);
  if (matrix.planes.size() > 1) view.panels.scales = bytes_of(matrix, 1);
  switch (reading) {
    case Reading::kBf16:
      view.reading = kTileBf16;
      return view;
    case Reading::kMxfp4W4A16:
      view.reading = kTileMxfp4;
      return view;
    case Reading::kBsfpFull:
      view.reading = matrix.element == Element::kBf16 ? kTileBsfpFull : kTileBsfpFullF16;
      view.panels.rest = bytes_of(matrix, 2);
      view.panels.table = matrix.plane(3).as<const uint16_t>();
      view.panels.escaped = escaped_weights_of(matrix, 4);
      return view;
    case Reading::kMxbf16Full:
      view.reading = kTileMxbf16Full;
      view.panels.rest = bytes_of(matrix, 2);
      view.panels.escaped = escaped_weights_of(matrix, 3);
      return view;
    case Reading::kInt4W4A16:
      view.reading = kTileInt4;
      return view;
    case Reading::kInt4AsymmetricW4A16:
      view.reading = kTileInt4Asymmetric;
      return view;
    case Reading::kInt8W8A16:
      view.reading = kTileInt8;
      return view;
    case Reading::kQ8_0:
      view.reading = kTileQ8_0;
      view.panels.rest = bytes_of(matrix, 2);
      return view;
    default:
      fail(ErrorKind::kUsage, "the reading {} does not unpack tiles", reading_name(reading));
  }
}

IntegerView integer_view(const PackedMatrix& matrix, int64_t first, int64_t panel_count) {
  IntegerView view{};
  view.panels.panel_count = panel_count;
  const int64_t tiles = first * matrix.tiles();
  const int64_t groups = first * scale_groups(matrix);
  view.panels.codes = bytes_of(matrix, 0) + tiles * kCodeTileBytes;
  view.panels.zeros = view.panels.codes;  // not read without a plane of zeros, but kernels count on from it
  switch (matrix.format) {
    case Format::kMxfp4:
    case Format::kMxbf16:
      view.weights = kIntegerMxfp4;
      view.panels.scales = bytes_of(matrix, 1) + tiles * kPanelWidth;
      return view;
    case Format::kBsfp:
      view.weights = kIntegerBsfp;
      view.panels.scales = bytes_of(matrix, 1) + groups * kPanelWidth * 2;
      return view;
    case Format::kInt4Asymmetric:
      view.panels.zeros = bytes_of(matrix, 2) + groups * kPanelWidth;
      [[fallthrough]];
    case Format::kInt4:
      view.weights = matrix.format == Format::kInt4Asymmetric ? kIntegerInt4Asymmetric : kIntegerInt4;
      view.panels.scales = bytes_of(matrix, 1) + groups * kPanelWidth * 2;
      return view;
    case Format::kQ8_0:
      view.weights = kIntegerUpper;
      view.panels.scales = bytes_of(matrix, 1) + tiles * kPanelWidth * 2;
      return view;
    case Format::kInt8:
      view.weights = kIntegerInt8;
      view.panels.codes = bytes_of(matrix, 0) + tiles * kInnerStep * kPanelWidth;
      view.panels.scales = bytes_of(matrix, 1) + tiles * kPanelWidth * 2;
      return view;
    default:
      fail(ErrorKind::kUsage, "{} has no reading in integers", format_name(matrix.format));
  }
}

}  // namespace verbatim
