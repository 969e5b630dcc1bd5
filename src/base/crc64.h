#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace verbatim {

/// CRC-64/XZ: the polynomial of ECMA-182, reflected, all bits inverted at the beginning and at the end. The
/// checksum of "123456789" is 0x995dc9bbdf1939fa. `before` is the checksum of what precedes the bytes, so
/// that a long run can be taken in pieces.
uint64_t crc64(std::span<const std::byte> bytes, uint64_t before = 0);

}  // namespace verbatim
