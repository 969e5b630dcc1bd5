#include "kv/kept_chunk.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/crc64.h"

namespace verbatim {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");
static_assert(sizeof(ChunkOrigin) == 144 && sizeof(KeptChunkHeader) == 720, "without bytes between members");
static_assert(std::is_trivially_copyable_v<KeptChunkHeader>);

namespace {

constexpr std::array<char, 8> kKeptChunkMagic = {'V', 'B', 'T', 'C', 'H', 'U', 'N', '\n'};
/// Changes when the layout of the file or of the keys and values in a page does.
constexpr uint32_t kKeptChunkVersion = 1;

}  // namespace

Digest root_key(const ChunkOrigin& origin) {
  return Sha256()
      .add(std::as_bytes(std::span(kKeptChunkMagic)))
      .add(std::as_bytes(std::span(&kKeptChunkVersion, 1)))
      .add(std::as_bytes(std::span(&origin, 1)))
      .digest();
}

Digest chunk_key(const Digest& parent, ChunkTokens tokens) {
  return Sha256().add(parent).add(std::as_bytes(tokens)).digest();
}

KeptChunkHeader kept_chunk_header(const ChunkOrigin& origin, const Digest& parent, ChunkTokens tokens,
                                  size_t stored) {
  KeptChunkHeader header{.magic = kKeptChunkMagic,
                         .version = kKeptChunkVersion,
                         .positions = static_cast<uint32_t>(kAttentionChunk),
                         .origin = origin,
                         .parent = parent,
                         .stored = stored};
  std::ranges::copy(tokens, header.tokens.begin());
  return header;
}

uint64_t kept_chunk_checksum(const KeptChunkHeader& header, std::span<const std::byte> stored) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return crc64(stored, crc64(bytes.first(offsetof(KeptChunkHeader, checksum))));
}

std::span<const std::byte> kept_chunk(std::span<const std::byte> bytes, const KeptChunkHeader& expected) {
  if (bytes.size() != sizeof(KeptChunkHeader) + expected.stored) return {};
  KeptChunkHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(&header, &expected, offsetof(KeptChunkHeader, checksum)) != 0) return {};
  const std::span<const std::byte> stored = bytes.subspan(sizeof(header));
  if (header.checksum != kept_chunk_checksum(header, stored)) return {};
  return stored;
}

}  // namespace verbatim
