#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/crc64.h"
#include "base/error.h"
#include "base/memory_map.h"
#include "base/new_file.h"
#include "drafting/ngram_table.h"

namespace verbatim {

namespace {

// The file of a table, all numbers little-endian:
//   head       64 bytes
//   entries    40 bytes each, those of the shortest order first, in the order of their sets
//   checksum   crc64() of all before it, 8 bytes
constexpr char kMagic[8] = {'V', 'B', 'N', 'G', 'R', 'A', 'M', 'S'};
constexpr uint32_t kTableVersion = 1;

struct Head {
  char magic[8] = {};
  uint32_t version = kTableVersion;
  int32_t shortest = 0;
  int32_t longest = 0;
  int32_t vocabulary = 0;
  int64_t contexts = 0;
  uint64_t entries = 0;
  uint32_t tick = 0;
  uint32_t reserved[5] = {};
};
static_assert(sizeof(Head) == 64);
static_assert(std::endian::native == std::endian::little);

}  // namespace

struct NgramTable::Stored {
  uint32_t index;  ///< of the order, 0 for the shortest
  uint32_t set;
  uint32_t tag;
  uint32_t used;
  std::array<int32_t, Followers::kMost> tokens;
  std::array<uint8_t, Followers::kMost> counts;
  uint8_t others;
  uint8_t reserved[3];
};

void NgramTable::save(const std::filesystem::path& path) const {
  static_assert(sizeof(Stored) == 40);
  NewFile file(path);
  uint64_t checksum = 0;
  const auto write = [&](const void* from, size_t size) {
    const std::span bytes(static_cast<const std::byte*>(from), size);
    checksum = crc64(bytes, checksum);
    file.out().write(bytes);
  };
  Head head;
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.shortest = shape_.shortest;
  head.longest = shape_.longest;
  head.vocabulary = shape_.vocabulary;
  head.contexts = shape_.contexts;
  head.entries = static_cast<uint64_t>(size());
  head.tick = tick_;
  write(&head, sizeof head);
  std::vector<Stored> order;
  for (size_t index = 0; index < sets_.size(); ++index) {
    order.clear();
    for (const Set& set : sets_[index]) {
      for (const Entry& entry : set.entries) {
        if (entry.empty()) continue;
        const Followers& followers = entry.followers;
        order.push_back({static_cast<uint32_t>(index),
                         static_cast<uint32_t>(place_of(entry) & (most_sets_ - 1)),
                         entry.tag,
                         entry.used,
                         followers.tokens,
                         followers.counts,
                         followers.others,
                         {}});
      }
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Stored& a, const Stored& b) { return a.set < b.set; });
    write(order.data(), order.size() * sizeof(Stored));
  }
  const uint64_t all = checksum;
  write(&all, sizeof all);
  file.keep();
}

NgramTable NgramTable::load(const std::filesystem::path& path) {
  const MemoryMap file(path);
  const std::span<const std::byte> bytes = file.bytes();
  const auto refuse = [&](const char* what) { bad_input("{} {}: make it anew", path.string(), what); };
  Head head;
  if (bytes.size() < sizeof(Head) + sizeof(uint64_t) ||
      std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    bad_input("{} is not a table of n-grams: `verbatim ngrams` makes one", path.string());
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.version != kTableVersion) {
    bad_input("{} is a table of n-grams of version {}; this program reads version {}: make it anew",
              path.string(), head.version, kTableVersion);
  }
  uint64_t checksum = 0;
  const size_t body = bytes.size() - sizeof checksum;
  std::memcpy(&checksum, bytes.data() + body, sizeof checksum);
  if (crc64(bytes.first(body)) != checksum) refuse("is damaged: its checksum differs");
  if (head.shortest < 1 || head.longest < head.shortest || head.longest > kLongest || head.vocabulary < 0 ||
      head.contexts < static_cast<int64_t>(kWays) || head.contexts > kMostContexts ||
      !std::has_single_bit(static_cast<uint64_t>(head.contexts))) {
    refuse("has a shape that no table has");
  }
  if ((body - sizeof head) % sizeof(Stored) != 0 || (body - sizeof head) / sizeof(Stored) != head.entries) {
    refuse("has another length than its head says");
  }

  NgramTable table({head.shortest, head.longest, head.contexts, head.vocabulary});
  table.tick_ = head.tick;
  for (uint64_t i = 0; i < head.entries; ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + sizeof head + i * sizeof stored, sizeof stored);
    if (stored.index >= table.sets_.size() || stored.set >= table.most_sets_ || stored.counts[0] == 0) {
      refuse("has an entry that belongs nowhere");
    }
    for (size_t f = 0; f < Followers::kMost; ++f) {
      const bool used = stored.counts[f] > 0;
      if (used && (stored.tokens[f] < 0 || stored.tokens[f] >= head.vocabulary)) {
        refuse("has a token outside its vocabulary");
      }
      if (used && f > 0 && stored.counts[f - 1] == 0) refuse("has an entry with a gap");
    }
    Entry* const entry = table.room_for(stored.index, uint64_t{stored.tag} << 32 | stored.set);
    if (entry == nullptr) refuse("has more entries in one place than there is room for");
    const std::array<uint8_t, 3> place = entry->followers.place;
    *entry = {stored.tag, stored.used, {stored.tokens, stored.counts, stored.others, place}};
  }
  return table;
}

}  // namespace verbatim
