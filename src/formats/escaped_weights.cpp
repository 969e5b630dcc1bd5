#include "formats/escaped_weights.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace verbatim {

namespace {

constexpr size_t kEntryBytes = 3;
constexpr int64_t kHalf = 256;

size_t halves(const PackedMatrix& matrix) {
  return static_cast<size_t>(matrix.panels() * matrix.tiles() * 2);
}

/// The number of entries of a half with this count.
int entries_of(uint8_t count) {
  return count == kZeroHalf ? 0 : count == kFullHalf ? static_cast<int>(kHalf) : count;
}

}  // namespace

void HalfTile::add(uint8_t position, uint16_t bits, bool escaped) {
  bits_[position] = bits;
  escaped_[position] = escaped;
  count_ += escaped ? 1 : 0;
  zero_ = zero_ && bits == 0;
}

uint8_t HalfTile::finish(PanelTail& tail) const {
  if (zero_) return kZeroHalf;
  const bool all = count_ >= kFullHalf;
  for (size_t position = 0; position < bits_.size(); ++position) {
    if (!all && !escaped_[position]) continue;
    tail.push_back(static_cast<std::byte>(position));
    tail.push_back(static_cast<std::byte>(bits_[position] & 0xff));
    tail.push_back(static_cast<std::byte>(bits_[position] >> 8));
  }
  return all ? kFullHalf : static_cast<uint8_t>(count_);
}

void add_count_plane(PackedMatrix& matrix) {
  matrix.planes.emplace_back(halves(matrix));
}

void gather_escaped_weights(PackedMatrix& matrix, int first, std::span<const PanelTail> tails) {
  matrix.planes.resize(static_cast<size_t>(first) + 1);
  Plane starts((tails.size() + 1) * sizeof(uint64_t));
  uint64_t total = 0;
  for (size_t panel = 0; panel < tails.size(); ++panel) {
    starts.as<uint64_t>()[panel] = total;
    total += tails[panel].size() / kEntryBytes;
  }
  starts.as<uint64_t>()[tails.size()] = total;
  Plane positions(total);
  Plane values(total * sizeof(uint16_t));
  size_t entry = 0;
  for (const PanelTail& tail : tails) {
    for (size_t i = 0; i < tail.size(); i += kEntryBytes, ++entry) {
      positions.as<uint8_t>()[entry] = static_cast<uint8_t>(tail[i]);
      values.as<uint16_t>()[entry] =
          static_cast<uint16_t>(static_cast<unsigned>(tail[i + 1]) | static_cast<unsigned>(tail[i + 2]) << 8);
    }
  }
  matrix.planes.push_back(std::move(starts));
  matrix.planes.push_back(std::move(positions));
  matrix.planes.push_back(std::move(values));
}

void validate_escaped_weights(const PackedMatrix& matrix, int first) {
  check_plane(matrix, first, halves(matrix));
  check_plane(matrix, first + 1, static_cast<size_t>(matrix.panels() + 1) * sizeof(uint64_t));
  const uint8_t* const counts = matrix.plane(first).as<const uint8_t>();
  const uint64_t* const starts = matrix.plane(first + 1).as<uint64_t>();
  uint64_t total = 0;
  for (int64_t panel = 0; panel <= matrix.panels(); ++panel) {
    if (starts[panel] != total) {
      bad_input(
          "a matrix in {} is damaged at panel {}, where its table of escaped weights does not add up: pack "
          "the "
          "model anew",
          format_name(matrix.format), panel);
    }
    if (panel == matrix.panels()) break;
    for (int64_t half = panel * matrix.tiles() * 2; half < (panel + 1) * matrix.tiles() * 2; ++half) {
      total += static_cast<uint64_t>(entries_of(counts[half]));
    }
  }
  check_plane(matrix, first + 2, total);
  check_plane(matrix, first + 3, total * sizeof(uint16_t));
}

EscapedWeights escaped_weights_of(const PackedMatrix& matrix, int first) {
  return {matrix.plane(first).as<const uint8_t>(), matrix.plane(first + 1).as<const uint64_t>(),
          matrix.plane(first + 2).as<const uint8_t>(), matrix.plane(first + 3).as<const uint16_t>()};
}

int64_t escaped_weight_bytes(const PackedMatrix& matrix, int first) {
  size_t sum = 0;
  for (int plane = first; plane < first + 4; ++plane) sum += matrix.plane(plane).size();
  return static_cast<int64_t>(sum);
}

void apply_escaped_weights(const PackedMatrix& matrix, int first, int64_t panel, std::span<uint16_t> bits) {
  const EscapedWeights lists = escaped_weights_of(matrix, first);
  uint64_t next = lists.starts[panel];
  for (int64_t half = 0; half < matrix.tiles() * 2; ++half) {
    const std::span<uint16_t> weights = bits.subspan(static_cast<size_t>(half * kHalf), kHalf);
    const uint8_t count = lists.counts[panel * matrix.tiles() * 2 + half];
    if (count == kZeroHalf) {
      std::fill(weights.begin(), weights.end(), uint16_t{0});
      continue;
    }
    for (int i = 0; i < entries_of(count); ++i, ++next) weights[lists.positions[next]] = lists.values[next];
  }
}

}  // namespace verbatim
