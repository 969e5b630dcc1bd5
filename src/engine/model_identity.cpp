#include "engine/model_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "base/crc64.h"
#include "base/processors.h"
#include "base/thread_team.h"
#include "container/config_json.h"
#include "engine/whole_text.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

/// Pieces of at most so many bytes are summed up by different threads.
constexpr size_t kPiece = size_t{1} << 22;

/// All that a reading reads of the weights, cut into pieces, and a text that says what the pieces are.
struct ReadWeights {
  std::vector<std::span<const std::byte>> pieces;
  std::string text;

  void add(std::string_view name, std::span<const std::byte> bytes) {
    text += fmt::format("{} {}\n", name, bytes.size());
    for (; bytes.size() > kPiece; bytes = bytes.subspan(kPiece)) pieces.push_back(bytes.first(kPiece));
    pieces.push_back(bytes);
  }
  void add(std::string_view name, const Buffer<float>& vector) { add(name, std::as_bytes(vector.span())); }
};

ReadWeights read_weights(const DecoderWeights& weights, Reading reading) {
  ReadWeights read;
  each_matrix(weights, [&](const LinearWeight& matrix) {
    const PackedMatrix& store = matrix.store(reading);
    for (const Plane& plane : store.planes) read.add(format_name(store.format), plane.bytes());
    read.text += fmt::format("{} {}\n", reading_name(matrix.resolve(reading)), matrix.wide_inputs);
  });
  for (const LayerWeights& layer : weights.layers) {
    for (const Buffer<float>* const vector :
         {&layer.attention_norm, &layer.attention_end_norm, &layer.mlp_end_norm, &layer.qkv_bias,
          &layer.query_norm, &layer.key_norm, &layer.mlp_norm, &layer.qkv_order, &layer.output_order,
          &layer.gate_up_order, &layer.down_order}) {
      read.add("vector", *vector);
    }
    if (layer.output_bias.size() > 0) read.add("output bias", layer.output_bias);
    for (const Buffer<float>* const vector :
         {&layer.attention_norm_bias, &layer.mlp_norm_bias, &layer.gate_up_bias, &layer.down_bias}) {
      if (vector->size() > 0) read.add("bias", *vector);
    }
    if (layer.head_sinks.size() > 0) read.add("sinks", layer.head_sinks);
    if (layer.router.size() > 0) read.add("router", layer.router);
    if (layer.router_bias.size() > 0) read.add("router bias", layer.router_bias);
    for (const ExpertWeights& expert : layer.experts) {
      if (expert.gate_up_bias.size() > 0) read.add("bias of gate and up", expert.gate_up_bias);
      if (expert.down_bias.size() > 0) read.add("bias of down", expert.down_bias);
    }
  }
  read.add("final norm", weights.final_norm);
  if (weights.final_norm_bias.size() > 0) read.add("bias of the final norm", weights.final_norm_bias);
  if (weights.positions.size() > 0) read.add("positions", weights.positions);
  read.add("head order", weights.head_order);
  read.add("embedding", weights.embedding.data);
  return read;
}

/// The checksum of the rotary embedding's cosines and sines up to the end of the context, at positions that
/// the few tokens of sum_of_states() do not reach.
uint64_t sum_of_angles(const Decoder& decoder) {
  const RotaryEmbedding& rope = decoder.rope();
  const auto half = static_cast<size_t>(rope.half());
  std::vector<float> angles(2 * half);
  uint64_t sum = 0;
  const int64_t context = decoder.config().context;
  for (int64_t position = 1; position < 2 * context; position *= 2) {
    rope.angles(std::min(position, context - 1), angles.data(), angles.data() + half);
    sum = crc64(std::as_bytes(std::span(angles)), sum);
  }
  return sum;
}

/// The checksum of the hidden states that some tokens get. It differs where another build of the library,
/// another machine path or another library of mathematics rounds in another way.
uint64_t sum_of_states(const Decoder& decoder, Reading reading) {
  constexpr size_t kTokens = 32;
  PassKind kind(reading);
  kind.hidden_states = true;
  std::vector<int32_t> tokens(std::min(kTokens, static_cast<size_t>(decoder.config().context)));
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(decoder.config().vocab_size));
  }
  uint64_t sum = 0;
  evaluate_text(decoder, kind, {}, hardware_threads(), tokens, [&](int64_t, Matrix<const float> states) {
    for (int64_t r = 0; r < states.rows; ++r) sum = crc64(std::as_bytes(states.row_span(r)), sum);
  });
  return sum;
}

}  // namespace

uint64_t quick_fingerprint(const ModelData& model) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  const DecoderWeights& weights = model.decoder.weights();
  std::string text = config_json(model.checkpoint.config).dump();
  std::vector<float> column;
  uint64_t sum = 0;
  each_matrix(weights, [&](const LinearWeight& matrix) {
    const Reading reading = matrix.resolve(Reading::kFull);
    // Lossless formats give the same bits, but `q8_0` and `k-quants` round activations where `f32` does not.
    const bool exact =
        is_exact(reading_format(reading)) && reading != Reading::kQ8_0 && reading != Reading::kKQuantsA16;
    text += exact ? "exact " : fmt::format("{} ", reading_name(reading));
    if (reading == Reading::kQ8_0 && kernels().halves_product != nullptr) text += "in integers ";
    // Files of one model that was quantized in several ways can have the same embedding.
    const PackedMatrix& store = matrix.store(reading);
    column.assign(static_cast<size_t>(store.k), 0.0f);
    operations(store.format).unpack_column(store, reading, 0, column);
    sum = crc64(std::as_bytes(std::span(column).first(static_cast<size_t>(matrix.k))), sum);
  });
  sum = crc64(std::as_bytes(std::span(text)), sum);
  const std::span<const std::byte> embedding = weights.embedding.data;
  return crc64(embedding.first(std::min(embedding.size(), kMostBytes)), sum);
}

Digest digest_of(const ModelData& model, Reading reading) {
  const ReadWeights read = read_weights(model.decoder.weights(), reading);
  std::vector<uint64_t> sums(read.pieces.size());
  ThreadTeam(hardware_threads()).split(std::ssize(sums), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      sums[static_cast<size_t>(i)] = crc64(read.pieces[static_cast<size_t>(i)]);
    }
  });
  sums.push_back(sum_of_states(model.decoder, reading));
  sums.push_back(sum_of_angles(model.decoder));
  const std::string config = config_json(model.checkpoint.config).dump();
  return Sha256()
      .add(std::as_bytes(std::span(std::string_view(VERBATIM_VERSION "\n"))))
      .add(std::as_bytes(std::span(config)))
      .add(std::as_bytes(std::span(read.text)))
      .add(std::as_bytes(std::span(sums)))
      .digest();
}

}  // namespace verbatim
