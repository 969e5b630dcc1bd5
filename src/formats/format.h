#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace verbatim {

/// A format: how a weight matrix is stored. The header named after each documents its layout.
enum class Format : uint8_t {
  kBf16,            ///< panels.h
  kF16,             ///< panels.h
  kF32,             ///< panels.h
  kInt8,            ///< int8.h
  kInt4,            ///< int4.h, symmetric
  kInt4Asymmetric,  ///< int4.h
  kMxfp4,           ///< mxfp4.h
  kBsfp,            ///< bsfp.h
  kMxbf16,          ///< mxbf16.h
  kSqueeze3,        ///< squeeze.h
  kSqueeze4,        ///< squeeze.h
  kQ8_0,            ///< q8_0.h
  kKQuants,         ///< k_quants.h
};
inline constexpr int kFormatCount = 13;

/// "bf16", "int4-asymmetric", ...
std::string_view format_name(Format format);
/// The format with a name, the inverse of format_name(). Throws Error(kBadInput), naming `where` and the
/// known formats, for any other name.
Format parse_format(std::string_view name, std::string_view where);
/// All formats, in the order of the enumeration.
const std::vector<Format>& all_formats();

/// A reading: a way to use stored weights. It says which bits are read, and in which precision activations
/// meet them.
enum class Reading : uint8_t {
  kFull,   ///< the most exact reading of the stores that are there
  kDraft,  ///< the reading of the stores that are there that drafts best: see draft_reading() in linear.h
  kBf16,   ///< BF16 weights, BF16 activations
  kF16,    ///< F16 weights, F32 activations
  kF32,
  kInt8W8A16,  ///< activations in BF16, as in every reading named w..a16
  kInt8W8A8,   ///< activations in int8, groups of 32
  kInt4W4A16,
  kInt4W4A8,  ///< activations in int8, groups of 128, as in every other reading named w..a8
  kInt4W4A4,  ///< activations in int4, groups of 128 (QSpec §3)
  kInt4AsymmetricW4A16,
  kInt4AsymmetricW4A8,
  kMxfp4W4A16,
  kMxfp4W4A8,
  kBsfpFull,     ///< every bit: the product is that of the original weights, bit for bit
  kBsfpDraft,    ///< the four draft bits, activations in int8, groups of 128
  kMxbf16Full,   ///< every bit: the product is that of the original weights, bit for bit
  kMxbf16Draft,  ///< exactly kMxfp4W4A8
  kSqueeze3,     ///< looked-up and sparse weights, activations in BF16 (dense) and F32 (sparse)
  kSqueeze4,
  kQ8_0,          ///< the codes of a file, activations in sixteen bits or in BF16
  kKQuantsA16,    ///< the blocks of a file, activations in sixteen bits, 256 with one step
  kKQuantsA8,     ///< the same with the upper eight bits of the activations
  kQ8_0Draft,     ///< the upper four bits of the codes, activations in int8, groups of 128
  kBsfpDraftA16,  ///< the four draft bits with the paper's levels, activations in F16
};

/// "full", "mxfp4-w4a8", "bsfp-draft", ...
std::string_view reading_name(Reading reading);
/// The reading with a name, the inverse of reading_name(). Throws Error(kBadInput), naming `where`, for any
/// other name.
Reading parse_reading(std::string_view name, std::string_view where);
/// The format that a reading reads. Not defined for kFull and kDraft.
Format reading_format(Reading reading);
/// The store that a reading reads, as formats to load are named: "full", "draft" or the name of a format.
std::string_view store_name(Reading reading);
/// The readings of a format, the most exact first.
const std::vector<Reading>& readings(Format format);

/// Whether a format is lossless: whether weights of a type that it can hold come back bit for bit.
bool is_exact(Format format);

}  // namespace verbatim
