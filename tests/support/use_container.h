#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "attention/attention.h"
#include "base/crc64.h"
#include "container/load.h"
#include "container/preamble.h"
#include "kv/dense.h"
#include "model/decoder.h"
#include "text/tokenizer.h"
#include "verbatim/error.h"

namespace verbatim::test {

// What tests and the fuzzer do with containers that may lie.

/// Bytes in memory of exactly their size, aligned as a mapped file is, so that AddressSanitizer sees whatever
/// is read outside them.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::string_view bytes) : size_(bytes.size()) {
    void* memory = nullptr;
    if (posix_memalign(&memory, kLeastAlignment, size_ + (size_ == 0)) != 0) throw std::bad_alloc();
    data_.reset(static_cast<std::byte*>(memory));
    if (size_ > 0) std::memcpy(data_.get(), bytes.data(), size_);
  }
  std::span<std::byte> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_;
};

/// Makes the first 64 bytes agree with the rest, as far as there is a rest, so that a change is not found by
/// its checksum alone.
inline void forge_preamble(std::span<std::byte> bytes) {
  if (bytes.size() < kPreambleBytes) return;
  Preamble preamble;
  std::memcpy(&preamble, bytes.data(), sizeof(preamble));
  std::memcpy(preamble.magic, kPackedMagic.data(), sizeof(preamble.magic));
  preamble.version = kContainerVersion;
  preamble.file_bytes = bytes.size();
  preamble.header_bytes = std::min<uint64_t>(preamble.header_bytes, bytes.size() - kPreambleBytes);
  preamble.header_offset = bytes.size() - preamble.header_bytes;
  preamble.header_checksum = crc64(bytes.last(preamble.header_bytes));
  preamble.checksum = preamble.own_checksum();
  std::memcpy(bytes.data(), &preamble, sizeof(preamble));
}

/// Reads through every index that the stores of a weight hold: in each reading a product, and two columns
/// unpacked.
inline void use_weight(const LinearWeight& weight, ThreadTeam& team) {
  constexpr int64_t kRows = 2;
  std::vector<float> x(static_cast<size_t>(kRows * weight.padded_k()), 0.5f);
  std::vector<float> y(static_cast<size_t>(kRows * weight.padded_columns()));
  std::vector<float> column(static_cast<size_t>(weight.padded_k()));
  LinearWorkspace workspace;
  for (const PackedMatrix& store : weight.stores) {
    for (const Reading reading : readings(store.format)) {
      linear(weight, reading, Matrix<const float>(x.data(), kRows, weight.padded_k()),
             Matrix<float>(y.data(), kRows, weight.padded_columns()), workspace, team);
      operations(store.format).unpack_column(store, reading, 0, column);
      operations(store.format).unpack_column(store, reading, weight.columns - 1, column);
    }
  }
}

/// A pass over two tokens, which also follows orders of inputs. Not for sizes that would take long.
inline void use_decoder(const ModelConfig& config, DecoderWeights weights, ThreadTeam& team) {
  constexpr int64_t kMost = 1 << 12;
  if (std::max<int64_t>(config.layers, config.hidden_size) > kMost) return;
  if (config.context < 2 || int64_t{config.heads} * config.head_dim > kMost) return;
  const Decoder decoder(config, std::move(weights));
  DenseCache cache(decoder.cache_shape(), kAttentionChunk);
  KvCache* const caches[] = {&cache};
  DecoderWorkspace workspace;
  const std::vector<Row> rows = {{.sequence = 0, .position = 0, .token = 0},
                                 {.sequence = 0, .position = 1, .token = config.vocab_size - 1}};
  decoder.forward(rows, Reading::kFull, caches, 1, workspace, team);
}

/// Opens a container and uses all that it holds. True when it is one, false when it is refused as bad input;
/// anything else escapes.
inline bool use_container(std::span<const std::byte> bytes, ThreadTeam& team) {
  try {
    const Container container = parse_container(bytes, "model.vbt");
    DecoderWeights weights = load_weights(container, {});
    for (const StoredMatrix& matrix : container.header.matrices) {
      use_weight(matrix_of(weights, matrix.name), team);
    }
    std::vector<float> row(static_cast<size_t>(weights.embedding.columns()));
    weights.embedding.read_row(0, row);
    weights.embedding.read_row(weights.embedding.rows() - 1, row);
    use_decoder(container.header.config, std::move(weights), team);
    const Checkpoint checkpoint = checkpoint_of(container);
    if (checkpoint.tokenizer.kind != TokenizerSource::Kind::kNone) load_tokenizer(checkpoint.tokenizer);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadInput) throw;
    return false;
  }
}

}  // namespace verbatim::test
