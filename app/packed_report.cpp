#include "packed_report.h"

#include <algorithm>
#include <map>

#include "model/weights.h"

namespace verbatim::app {

namespace {

int64_t bytes_of(const StoredFormat& store) {
  uint64_t sum = 0;
  for (const StoredPlane& plane : store.planes) sum += plane.bytes;
  return static_cast<int64_t>(sum);
}

/// The weights of every matrix as the model has them, however many the scheme made of them.
std::map<std::string, int64_t> own_weights(ModelConfig config) {
  config.quantization = QuantizationScheme::kNone;
  std::map<std::string, int64_t> weights;
  for (const MatrixSpec& spec : matrix_specs(config)) weights[spec.name] = spec.columns() * spec.k;
  return weights;
}

}  // namespace

double StoredFormatReport::bits_per_weight() const {
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

PackedReport report_packed(Container container) {
  PackedReport report{.container = std::move(container), .formats = {}};
  const std::map<std::string, int64_t> weights = own_weights(report.container.header.config);
  for (const StoredMatrix& matrix : report.container.header.matrices) {
    for (const StoredFormat& store : matrix.stores) {
      auto found = std::find_if(report.formats.begin(), report.formats.end(),
                                [&](const StoredFormatReport& f) { return f.format == store.format; });
      if (found == report.formats.end()) found = report.formats.insert(found, {.format = store.format});
      ++found->matrices;
      found->planes += static_cast<int64_t>(store.planes.size());
      found->bytes += bytes_of(store);
      found->weights += weights.at(matrix.name);
    }
  }
  for (const StoredVector& vector : report.container.header.vectors) {
    report.vector_bytes += static_cast<int64_t>(vector.plane.bytes);
  }
  return report;
}

int64_t parameters_of(const ContainerHeader& header) {
  int64_t sum = int64_t{header.config.vocab_size} * header.config.hidden_size;
  for (const StoredVector& vector : header.vectors) {
    if (!ordered_inputs(header.config, vector.name)) sum += vector.length;
  }
  for (const auto& [name, weights] : own_weights(header.config)) {
    if (name != "head" || !header.config.tied_embeddings) sum += weights;
  }
  return sum;
}

MemoryEstimate estimate_memory(const Container& container) {
  MemoryEstimate estimate = estimate_cache(container.header.config);
  for (const StoredMatrix& matrix : container.header.matrices) {
    const StoredFormat* const exact = matrix.find_exact();
    estimate.full += bytes_of(exact != nullptr ? *exact : matrix.stores.front());
    if (const StoredFormat* const mxfp4 = matrix.find(Format::kMxfp4)) estimate.mxfp4 += bytes_of(*mxfp4);
  }
  return estimate;
}

}  // namespace verbatim::app
