#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace verbatim {

// MXFP4 as the two layouts of a gpt-oss have it. In a GGUF file a block of 32 weights is a scale and then 16
// bytes, of which each has codes i and i + 16. In a folder the scales are apart, and the bytes have
// neighbours. In either the earlier code is in the lower half of its byte.

/// Appends the codes of a GGUF file's blocks as a folder has them.
void append_mxfp4_codes(std::span<const std::byte> blocks, std::vector<std::byte>& codes);

/// Appends the scales of a GGUF file's blocks.
void append_mxfp4_scales(std::span<const std::byte> blocks, std::vector<std::byte>& scales);

/// Appends blocks as a GGUF file has them, made from a folder's codes and scales.
void append_mxfp4_blocks(std::span<const std::byte> codes, std::span<const std::byte> scales,
                         std::vector<std::byte>& blocks);

}  // namespace verbatim
