#include "engine/session_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/crc64.h"
#include "base/error.h"
#include "base/memory_map.h"
#include "base/new_file.h"
#include "engine/model_identity.h"
#include "kernels/dispatch.h"

namespace verbatim {

namespace {

constexpr std::array<char, 8> kMagic = {'V', 'B', 'T', 'S', 'E', 'S', 'S', '\n'};
constexpr uint32_t kVersion = 2;

/// The beginning of the file. Tokens follow, as 32-bit integers, and then the keys and values. All numbers
/// are little-endian, as the machines are that the library runs on.
struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t reserved = 0;
  uint64_t model = 0;               ///< quick_fingerprint()
  uint64_t tokens = 0;              ///< how many follow
  uint64_t positions = 0;           ///< that the keys and values are for
  uint64_t stored = 0;              ///< bytes of keys and values
  std::array<char, 32> path = {};   ///< how the kernels that computed them round: KernelTable::rounding
  std::array<char, 64> cache = {};  ///< cache_name()
  std::array<char, 64> reading = {};
  uint64_t checksum = 0;  ///< of everything else: the header up to here, and what follows it
};
static_assert(sizeof(Header) == 216 && std::is_trivially_copyable_v<Header>);

uint64_t checksum_of(const Header& header, std::span<const std::byte> rest) {
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return crc64(rest, crc64(bytes.first(offsetof(Header, checksum))));
}

}  // namespace

void write_session(const std::filesystem::path& path, const SavedSession& session, const KvCache& cache,
                   const ModelData& model) {
  const std::span<const std::byte> stored = cache.stored(session.positions);
  Header header;
  header.model = quick_fingerprint(model);
  header.tokens = session.tokens.size();
  header.positions = stored.empty() ? 0 : static_cast<uint64_t>(session.positions);
  header.stored = stored.size();
  header.path = text_field<32>(kernels().rounding);
  header.cache = text_field<64>(cache_name(session.cache));
  header.reading = text_field<64>(session.reading);
  const auto tokens = std::as_bytes(std::span(session.tokens));
  const auto bytes = std::as_bytes(std::span(&header, 1));
  header.checksum = crc64(stored, crc64(tokens, crc64(bytes.first(offsetof(Header, checksum)))));
  NewFile file(path);
  file.out().write(std::as_bytes(std::span(&header, 1)));
  file.out().write(tokens);
  file.out().write(stored);
  file.keep();
}

LoadedSession parse_session(std::span<const std::byte> bytes, const std::string& where,
                            const SessionModel& model) {
  Header header;
  if (bytes.size() >= sizeof(Header)) std::memcpy(&header, bytes.data(), sizeof(Header));
  if (bytes.size() < sizeof(Header) || header.magic != kMagic) {
    bad_input("{} is no saved session", where);
  }
  if (header.version != kVersion) {
    bad_input("{} was saved by another version of Verbatim (its format is {}, not {})", where, header.version,
              kVersion);
  }
  const std::span<const std::byte> rest = bytes.subspan(sizeof(Header));
  if (header.checksum != checksum_of(header, rest)) {
    bad_input("{} is damaged: its checksum is not that of its contents", where);
  }
  if (header.tokens > rest.size() / sizeof(int32_t) ||
      header.stored != rest.size() - header.tokens * sizeof(int32_t)) {
    bad_input("{} is damaged: its parts are not as long as it says", where);
  }
  if (header.model != model.fingerprint) {
    bad_input("{} was saved with another model than {}", where, model.name);
  }
  LoadedSession loaded;
  loaded.session.tokens.resize(header.tokens);
  std::ranges::copy(rest.first(header.tokens * sizeof(int32_t)),
                    std::as_writable_bytes(std::span(loaded.session.tokens)).begin());
  for (const int32_t token : loaded.session.tokens) {
    if (token < 0 || token >= model.vocab_size) {
      bad_input("{} holds token {}, which the model does not have", where, token);
    }
  }
  loaded.session.cache = parse_cache(text_of(header.cache), where);
  loaded.session.reading = text_of(header.reading);
  parse_reading(loaded.session.reading, where);
  if (header.positions > header.tokens) bad_input("{} holds more positions than tokens", where);
  if (text_of(header.path) != kernels().rounding) return loaded;
  loaded.session.positions = static_cast<int64_t>(header.positions);
  const std::span<const std::byte> stored = rest.subspan(header.tokens * sizeof(int32_t));
  loaded.stored.assign(stored.begin(), stored.end());
  return loaded;
}

LoadedSession read_session(const std::filesystem::path& path, const ModelData& model) {
  const MemoryMap file(path);
  return parse_session(file.bytes(), path.string(),
                       {.name = model.checkpoint.path.string(),
                        .fingerprint = quick_fingerprint(model),
                        .vocab_size = model.checkpoint.config.vocab_size});
}

}  // namespace verbatim
