#include "bench/random_weights.h"

#include <cstring>
#include <random>

#include "base/float16.h"
#include "formats/pack_linear.h"

namespace verbatim::bench {

namespace {

constexpr size_t kDraws = size_t{1} << 16;

std::vector<float> normal_draws() {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::vector<float> draws(kDraws);
  for (float& draw : draws) draw = to_float(to_bfloat16(normal(generator)));
  return draws;
}

}  // namespace

const std::vector<BenchFormat>& bench_formats() {
  static const std::vector<BenchFormat> formats = [] {
    std::vector<BenchFormat> list;
    for (const Format format : all_formats()) {
      const std::string name(format_name(format));
      if (format != Format::kKQuants) {
        list.push_back({name, format, readings(format)});
        if (format == Format::kSqueeze3 || format == Format::kSqueeze4) {
          list.push_back({.name = name + "-dense",
                          .format = format,
                          .readings = readings(format),
                          .sparse = {.sensitive = 0.0, .outliers = 0.0}});
          list.push_back({.name = name + "-gathered",
                          .format = format,
                          .readings = readings(format),
                          .outliers_gather = true});
        }
        continue;
      }
      for (int shape = 0; shape < kBlockShapes; ++shape) {
        list.push_back({name + "-q" + std::to_string(shape + 2), format, readings(format),
                        static_cast<BlockShape>(shape)});
      }
    }
    return list;
  }();
  return formats;
}

LinearWeight make_weight(BenchShape shape, const BenchFormat& format, ThreadTeam& team) {
  // Drawing tens of millions of normal numbers takes seconds; picking among many drawn before does not.
  static const std::vector<float> draws = normal_draws();
  const auto rows = [&](int64_t column, std::span<float> row) {
    uint64_t state = 0x9e3779b97f4a7c15u * (static_cast<uint64_t>(column) + 1);
    const bool has_outliers = format.outliers_gather && column % 100 == 0;
    for (float& weight : row) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      weight = draws[state >> 48];
      if (has_outliers && (state >> 32 & 0xffff) < 0.45 * 0x10000) weight *= 16.0f;
    }
  };
  const auto panels = static_cast<size_t>(ceil_div(shape.n, kPanelWidth));
  const KQuantRows blocks = {.shapes = std::vector<BlockShape>(panels, format.shape)};
  return pack_linear(shape.n, shape.k, rows,
                     {.formats = {format.format}, .sparse = format.sparse, .blocks = blocks}, team)
      .weight;
}

LinearWeight clone(const LinearWeight& weight) {
  LinearWeight copy;
  copy.columns = weight.columns;
  copy.k = weight.k;
  for (const PackedMatrix& store : weight.stores) {
    PackedMatrix& matrix = copy.stores.emplace_back();
    matrix.format = store.format;
    matrix.element = store.element;
    matrix.columns = store.columns;
    matrix.k = store.k;
    for (const Plane& plane : store.planes) {
      Plane& bytes = matrix.planes.emplace_back(plane.size());
      if (plane.size() > 0) std::memcpy(bytes.as<std::byte>(), plane.bytes().data(), plane.size());
    }
  }
  return copy;
}

int64_t bytes_read(const LinearWeight& weight, Reading reading) {
  const PackedMatrix& store = weight.store(reading);
  return operations(store.format).bytes_read(store, reading);
}

}  // namespace verbatim::bench
