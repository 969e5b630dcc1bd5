#include "tools/inspect_packed.h"

#include <algorithm>
#include <map>
#include <string>

#include "formats/format.h"
#include "model/weights.h"

namespace verbatim {

namespace {

/// The weights of every matrix as the model has them, however many the scheme made of them.
std::map<std::string, int64_t> own_weights(ModelConfig config) {
  config.quantization = QuantizationScheme::kNone;
  std::map<std::string, int64_t> weights;
  for (const MatrixSpec& spec : matrix_specs(config)) weights[spec.name] = spec.columns() * spec.k;
  return weights;
}

std::vector<StoredFormatReport> stored_formats(const ContainerHeader& header) {
  std::vector<StoredFormatReport> formats;
  const std::map<std::string, int64_t> weights = own_weights(header.config);
  for (const StoredMatrix& matrix : header.matrices) {
    for (const StoredFormat& store : matrix.stores) {
      const std::string name(format_name(store.format));
      auto found = std::find_if(formats.begin(), formats.end(),
                                [&](const StoredFormatReport& f) { return f.format == name; });
      if (found == formats.end()) found = formats.insert(found, {.format = name});
      ++found->matrices;
      found->planes += std::ssize(store.planes);
      found->bytes += bytes_of(store);
      found->weights += weights.at(matrix.name);
    }
  }
  return formats;
}

}  // namespace

double StoredFormatReport::bits_per_weight() const {
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(weights);
}

int64_t bytes_of(const StoredFormat& store) {
  uint64_t sum = 0;
  for (const StoredPlane& plane : store.planes) sum += plane.bytes;
  return static_cast<int64_t>(sum);
}

PackedReport report_packed(const Container& container) {
  const ContainerHeader& header = container.header;
  PackedReport report{.version = kContainerVersion,
                      .source = header.source,
                      .quantization = std::string(scheme_name(header.config.quantization)),
                      .formats = stored_formats(header),
                      .sparse = {},
                      .embedding_type = dtype_name(header.embedding_type),
                      .embedding_bytes = static_cast<int64_t>(header.embedding.bytes),
                      .vectors = std::ssize(header.vectors),
                      .vocabulary_files = {},
                      .warnings = header.warnings,
                      .planes = {}};
  for (const StoredVector& vector : header.vectors) {
    report.vector_bytes += static_cast<int64_t>(vector.plane.bytes);
  }
  for (const StoredFile& file : header.tokenizer_files) {
    report.vocabulary_files.push_back({file.name, static_cast<int64_t>(file.plane.bytes)});
  }
  for (const auto& [name, plane] : all_planes(header)) {
    report.planes.push_back({name, plane.offset, plane.bytes, plane.checksum});
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

}  // namespace verbatim
