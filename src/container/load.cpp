#include "container/load.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace verbatim {

namespace {

/// "bf16, mxfp4"
std::string names_of(const std::vector<Format>& formats) {
  std::vector<std::string_view> names;
  for (const Format format : formats) names.push_back(format_name(format));
  return fmt::format("{}", fmt::join(names, ", "));
}

[[noreturn]] void lacks(const Container& container, std::optional<Format> wanted) {
  const std::vector<Format> held = container.formats();
  const std::string there = held.empty() ? "different formats" : names_of(held);
  if (const QuantizationScheme scheme = container.header.config.quantization;
      scheme != QuantizationScheme::kNone) {
    bad_input(
        "{} holds its weights in {} only, quantized with the scheme {}: choose a recipe that runs these, as "
        "w4a16 or "
        "qspec, or give the model that it was made from",
        container.path.string(), there, scheme_name(scheme));
  }
  std::string more = held.empty() ? "" : names_of(held) + ", ";
  std::erase(more, ' ');
  if (!wanted) {
    bad_input(
        "{} holds its weights in {} only, none of which is lossless: choose one with --formats, or pack the "
        "model again with `verbatim pack MODEL -o FILE --formats full`",
        container.path.string(), there);
  }
  bad_input(
      "{} holds no weights in {}, which the recipe or --formats asks for; it holds {}: choose another recipe "
      "or format, or pack the model again with `verbatim pack MODEL -o FILE --formats {}{}`",
      container.path.string(), format_name(*wanted), there, more, format_name(*wanted));
}

/// Checks the order of a matrix's inputs: it must name no input that the model does not have, since inputs
/// are read by it.
void check_order(const Container& container, const std::string& name, std::span<const float> order,
                 int64_t inputs) {
  const auto is_input = [&](float at) {
    return at >= -1.0f && at < static_cast<float>(inputs) && at == std::floor(at);
  };
  if (std::ranges::all_of(order, is_input)) return;
  bad_input("{}: {} names inputs that are not there; the file is damaged, quantize the model again",
            container.path.string(), name);
}

std::vector<const StoredFormat*> chosen_stores(const Container& container, const StoredMatrix& matrix,
                                               const std::vector<std::optional<Format>>& formats) {
  std::vector<const StoredFormat*> chosen;
  if (formats.empty()) {
    for (const StoredFormat& store : matrix.stores) chosen.push_back(&store);
  }
  for (const std::optional<Format>& format : formats) {
    const StoredFormat* const store = format ? matrix.find(*format) : matrix.find_exact();
    if (store == nullptr) lacks(container, format);
    if (std::find(chosen.begin(), chosen.end(), store) == chosen.end()) chosen.push_back(store);
  }
  return chosen;
}

}  // namespace

Checkpoint checkpoint_of(const Container& container) {
  Checkpoint checkpoint;
  checkpoint.path = container.path;
  checkpoint.format = "vbt";
  checkpoint.config = container.header.config;
  checkpoint.tokenizer = {.kind = container.header.tokenizer, .path = container.path};
  for (const StoredFile& file : container.header.tokenizer_files) {
    const auto bytes = container.plane(file.plane);
    checkpoint.tokenizer.embedded[file.name] = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  if (container.file != nullptr) checkpoint.files.push_back(container.file);
  return checkpoint;
}

Checkpoint open_without_weights(const std::filesystem::path& path) {
  return is_packed(path) ? checkpoint_of(open_container(path)) : open_checkpoint(path);
}

PackedMatrix map_store(const Container& container, const StoredMatrix& matrix, const StoredFormat& store) {
  PackedMatrix packed;
  packed.format = store.format;
  packed.element = store.element;
  packed.own = store.own;
  packed.columns = round_up(matrix.columns, kPanelWidth);
  packed.k = round_up(matrix.k, kInnerStep);
  for (const StoredPlane& plane : store.planes) packed.planes.emplace_back(container.plane(plane));
  try {
    operations(store.format).validate(packed);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}: {}", container.path.string(), matrix.name, error.what()));
  }
  return packed;
}

DecoderWeights load_weights(const Container& container, const std::vector<std::optional<Format>>& formats) {
  const ContainerHeader& header = container.header;
  DecoderWeights weights;
  weights.embedding = {.dtype = header.embedding_type,
                       .shape = {header.config.vocab_size, header.config.hidden_size},
                       .data = container.plane(header.embedding)};
  if (container.file != nullptr) weights.files.push_back(container.file);
  weights.layers = empty_layers(header.config);
  for (const StoredVector& vector : header.vectors) {
    const auto bytes = container.plane(vector.plane);
    Buffer<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    if (const std::optional<int64_t> inputs = ordered_inputs(header.config, vector.name)) {
      check_order(container, vector.name, values.span(), *inputs);
    }
    vector_of(weights, vector.name) = std::move(values);
  }
  for (const StoredMatrix& matrix : header.matrices) {
    LinearWeight& weight = matrix_of(weights, matrix.name);
    weight.columns = matrix.columns;
    weight.k = matrix.k;
    if (header.config.quantization == QuantizationScheme::kAtom) weight.wide_inputs = 2 * kOutlierInputs;
    for (const StoredFormat* const store : chosen_stores(container, matrix, formats)) {
      weight.stores.push_back(map_store(container, matrix, *store));
    }
  }
  return weights;
}

}  // namespace verbatim
