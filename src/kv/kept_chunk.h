#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/sha256.h"
#include "kv/cache.h"

namespace verbatim {

// Files that keep the keys and values of one whole chunk of a sequence. docs/formats.md describes them.

/// What the bits of keys and values depend on beside the tokens. It is written to files as it lies in memory.
struct ChunkOrigin {
  Digest model = {};                  ///< of the config, the weights, and how this machine rounds
  std::array<char, 32> path = {};     ///< how the kernels that compute round: KernelTable::rounding
  std::array<char, 64> reading = {};  ///< the recipe's reading that verifies
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t reserved = 0;
};

/// The tokens of a whole chunk.
using ChunkTokens = std::span<const int32_t, static_cast<size_t>(kAttentionChunk)>;

/// The key of a sequence's beginning without any tokens.
Digest root_key(const ChunkOrigin& origin);
/// The key of a chunk, which says what the origin and all tokens up to the chunk's end are. `parent` is the
/// key of the chunk before it in the sequence, or the root_key().
Digest chunk_key(const Digest& parent, ChunkTokens tokens);

/// The beginning of a file. The keys and values follow, as PagePool has them in a page of a whole chunk. All
/// numbers are little-endian, as the machines are that the library runs on.
struct KeptChunkHeader {
  std::array<char, 8> magic = {};
  uint32_t version = 0;
  uint32_t positions = 0;
  ChunkOrigin origin = {};
  Digest parent = {};
  std::array<int32_t, static_cast<size_t>(kAttentionChunk)> tokens = {};
  uint64_t stored = 0;    ///< bytes of keys and values
  uint64_t checksum = 0;  ///< CRC-64 of the header up to here and of the keys and values
};

/// The header of a chunk with `stored` bytes of keys and values, but for its checksum, which is left zero.
KeptChunkHeader kept_chunk_header(const ChunkOrigin& origin, const Digest& parent, ChunkTokens tokens,
                                  size_t stored);
/// The header's checksum if these are the keys and values.
uint64_t kept_chunk_checksum(const KeptChunkHeader& header, std::span<const std::byte> stored);
/// The keys and values in the bytes of a file. Nothing, which is an empty span, unless the file is whole,
/// undamaged, and of the very chunk that `expected` is the header of, whatever the file's name is.
std::span<const std::byte> kept_chunk(std::span<const std::byte> bytes, const KeptChunkHeader& expected);

}  // namespace verbatim
