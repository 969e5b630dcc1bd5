#include "prepare/quantize_model.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "container/pack.h"
#include "formats/pack_linear.h"
#include "prepare/gptq_pass.h"
#include "prepare/preparation.h"
#include "prepare/rounded_matrix.h"

namespace verbatim {

namespace {

/// What tells how far a stage is.
std::function<void(double)> told(const QuantizeModelOptions& options, const char* what) {
  if (!options.progress) return {};
  return [&options, what](double fraction) { options.progress(what, fraction); };
}

Preparation prepare(const Checkpoint& checkpoint, const QuantizeModelOptions& options, ThreadTeam& team) {
  MatrixInputs calibration;
  if (needs_calibration(options.scheme) && options.scheme != QuantizationScheme::kGptq) {
    calibration = gather_inputs(
        checkpoint, options.calibration,
        {.progress = told(options, "reading the calibration text"), .cancelled = options.cancelled}, team);
  }
  if (options.cancelled && options.cancelled()) return {};
  switch (options.scheme) {
    case QuantizationScheme::kAwq:
      return prepare_awq(checkpoint, calibration, options.bits, told(options, "looking for factors"),
                         options.cancelled, team);
    case QuantizationScheme::kAtom:
      return prepare_atom(checkpoint, calibration);
    case QuantizationScheme::kQuarot:
      return prepare_quarot(checkpoint);
    case QuantizationScheme::kNone:
    case QuantizationScheme::kRtn:
    case QuantizationScheme::kGptq:
      break;
  }
  return {};
}

/// The order of the inputs of a matrix prepared for Atom, as a vector (packed_inputs()).
std::vector<float> places(const std::vector<int32_t>& order, int64_t packed) {
  const int64_t inputs = std::ssize(order);
  const int64_t narrow = std::max<int64_t>(inputs - kOutlierInputs, 0);
  std::vector<float> places(static_cast<size_t>(packed), -1.0f);
  for (int64_t i = 0; i < narrow; ++i) {
    places[static_cast<size_t>(i)] = static_cast<float>(order[static_cast<size_t>(i)]);
  }
  for (int64_t i = narrow; i < inputs; ++i) {
    const auto input = static_cast<float>(order[static_cast<size_t>(i)]);
    const int64_t at = packed - 2 * kOutlierInputs + i - narrow;
    places[static_cast<size_t>(at)] = input;
    places[static_cast<size_t>(at + kOutlierInputs)] = input;
  }
  return places;
}

/// Splits the weight of each outlier, which has eight bits, into two numbers of four bits: one in the first
/// half counts sixteen steps, one in the second half single steps.
void split_outliers(std::span<float> row) {
  constexpr float kLargest = 119.0f;  // 7 · 16 + 7
  const auto half = static_cast<size_t>(kOutlierInputs);
  const std::span<float> upper = row.subspan(row.size() - 2 * half, half);
  const std::span<float> lower = row.subspan(row.size() - half);
  float largest = 0.0f;
  for (const float w : upper) {
    if (std::isfinite(w)) largest = std::max(largest, std::fabs(w));
  }
  // Sixteen steps must be a number of the format's scales, too.
  const float step = to_float(to_float16(std::min(largest / kLargest, 4094.0f)));
  for (size_t i = 0; i < half; ++i) {
    if (!std::isfinite(upper[i])) continue;
    const float code = step == 0.0f ? 0.0f : std::clamp(std::nearbyint(upper[i] / step), -kLargest, kLargest);
    const float sixteens = std::floor((code + 8.0f) / 16.0f);
    upper[i] = sixteens * (16.0f * step);
    lower[i] = (code - 16.0f * sixteens) * step;
  }
}

/// Packs one prepared matrix. `places` is the order of its inputs for Atom, and empty for other schemes.
PackResult pack_prepared(const DenseMatrix& dense, const std::vector<float>& places, Format format, int bits,
                         ThreadTeam& team) {
  if (format == Format::kInt4 && places.empty()) return pack_to_nearest(dense, bits, team);
  const auto k = static_cast<size_t>(dense.k);
  const auto rows = [&](int64_t column, std::span<float> out) {
    const auto row = std::span(dense.values).subspan(static_cast<size_t>(column) * k, k);
    if (places.empty()) {
      std::ranges::copy(row, out.begin());
      return;
    }
    for (size_t i = 0; i < places.size(); ++i) {
      out[i] = places[i] < 0.0f ? 0.0f : row[static_cast<size_t>(places[i])];
    }
    split_outliers(out);
  };
  const int64_t packed = places.empty() ? dense.k : std::ssize(places);
  return pack_linear(dense.columns, packed, rows, {.formats = {format}}, team);
}

/// The embedding as the scheme changes it: in BF16 if it was in BF16, in F32 otherwise.
struct PreparedEmbedding {
  std::vector<std::byte> bytes;
  TensorView view;
};

PreparedEmbedding prepare_embedding(const TensorView& embedding, const Preparation& preparation) {
  PreparedEmbedding result{.bytes = {}, .view = embedding};
  if (!preparation.embedding) return result;
  const bool bf16 = embedding.dtype == DType::kBF16;
  const auto columns = static_cast<size_t>(embedding.columns());
  const size_t row_bytes = columns * (bf16 ? sizeof(BFloat16) : sizeof(float));
  result.bytes.resize(static_cast<size_t>(embedding.rows()) * row_bytes);
  std::vector<float> row(columns);
  std::vector<BFloat16> rounded(columns);
  for (int64_t r = 0; r < embedding.rows(); ++r) {
    embedding.read_row(r, row);
    preparation.embedding(row);
    std::ranges::transform(row, rounded.begin(), [](float value) { return to_bfloat16(value); });
    std::byte* const to = result.bytes.data() + static_cast<size_t>(r) * row_bytes;
    const auto from = bf16 ? std::as_bytes(std::span(rounded)) : std::as_bytes(std::span(row));
    std::ranges::copy(from, to);
  }
  result.view = {.dtype = bf16 ? DType::kBF16 : DType::kF32, .shape = embedding.shape, .data = result.bytes};
  return result;
}

}  // namespace

bool needs_calibration(QuantizationScheme scheme) {
  return scheme == QuantizationScheme::kAwq || scheme == QuantizationScheme::kGptq ||
         scheme == QuantizationScheme::kAtom;
}

std::optional<Container> quantize_model(const Checkpoint& checkpoint, const std::filesystem::path& target,
                                        const QuantizeModelOptions& options, ThreadTeam& team) {
  if (needs_calibration(options.scheme) && options.calibration.empty()) {
    fail(ErrorKind::kUsage, "the scheme {} needs a calibration text", scheme_name(options.scheme));
  }
  if (options.scheme == QuantizationScheme::kQuarot && checkpoint.config.block_norms != BlockNorms::kBefore) {
    bad_input(
        "{}: its layers norm what they add to the residual stream, which the rotation of quarot does not "
        "commute with; choose another scheme",
        checkpoint.path.string());
  }
  if (options.scheme == QuantizationScheme::kQuarot && checkpoint.config.layer_norm) {
    bad_input(
        "{}: its norms are LayerNorms, whose mean the rotation of quarot does not keep; choose another "
        "scheme",
        checkpoint.path.string());
  }
  if (checkpoint.config.experts.count > 0 && options.scheme != QuantizationScheme::kRtn) {
    bad_input("{}: it is a mixture of experts, which of the schemes rtn alone knows; choose that",
              checkpoint.path.string());
  }
  const bool three = options.bits == 3 && options.scheme != QuantizationScheme::kAtom;
  if (options.bits != 4 && !three) {
    fail(ErrorKind::kUsage, "the scheme {} has no {} bits: {}", scheme_name(options.scheme), options.bits,
         options.scheme == QuantizationScheme::kAtom ? "it has 4" : "it has 3 and 4");
  }
  const Preparation preparation = prepare(checkpoint, options, team);
  if (options.cancelled && options.cancelled()) return std::nullopt;
  RoundedWeights rounded;
  if (options.scheme == QuantizationScheme::kGptq && options.format == Format::kInt4) {
    std::optional<RoundedWeights> all = round_in_pass(checkpoint, options.calibration,
                                                      {.bits = options.bits,
                                                       .progress = told(options, "rounding by the text"),
                                                       .cancelled = options.cancelled},
                                                      team);
    if (!all) return std::nullopt;
    rounded = std::move(*all);
  }
  const PreparedEmbedding embedding = prepare_embedding(embedding_of(checkpoint), preparation);

  std::map<std::string, MatrixSpec> own;  // the matrices as the model has them
  for (MatrixSpec& spec : matrix_specs(checkpoint.config)) own[spec.name] = std::move(spec);
  std::map<std::string, std::vector<float>> orders;
  PackParts parts{.config = checkpoint.config, .embedding = embedding.view, .matrix = {}, .vector = {}};
  parts.config.quantization = options.scheme;
  for (const auto& [name, order] : preparation.orders) {
    orders[order_name(name)] = places(order, packed_inputs(parts.config, std::ssize(order)));
  }
  parts.matrix = [&](const MatrixSpec& spec, std::vector<std::string>& not_finite) {
    if (const auto found = rounded.find(spec.name); found != rounded.end()) {
      if (!found->second.finite) not_finite.push_back(spec.name);
      return std::move(found->second.weight);
    }
    const MatrixSpec& source = own.at(spec.name);
    const MatrixRows rows = matrix_rows(checkpoint, source);
    DenseMatrix dense{.columns = source.columns(), .k = source.k, .values = {}};
    dense.values.resize(static_cast<size_t>(dense.columns * dense.k));
    team.split(dense.columns, [&](int64_t begin, int64_t end) {
      for (int64_t column = begin; column < end; ++column) rows(column, dense.row(column));
    });
    if (preparation.matrix) preparation.matrix(source, dense);
    PackResult packed =
        pack_prepared(dense, orders[order_name(spec.name)], options.format, options.bits, team);
    if (!packed.finite) not_finite.push_back(spec.name);
    return std::move(packed.weight);
  };
  parts.vector = [&](const VectorSpec& spec, std::vector<std::string>& not_finite) {
    if (const auto found = orders.find(spec.name); found != orders.end()) {
      Buffer<float> values(found->second.size());
      std::ranges::copy(found->second, values.data());
      return values;
    }
    Buffer<float> values = read_vector(checkpoint, spec, not_finite);
    if (preparation.vector) preparation.vector(spec, values.span());
    return values;
  };
  PackModelOptions pack;
  if (options.progress) {
    pack.load.progress = [&](double fraction) { options.progress("rounding to four bits", fraction); };
  }
  pack.cancelled = options.cancelled;
  return pack_parts(checkpoint, parts, target, pack);
}

}  // namespace verbatim
