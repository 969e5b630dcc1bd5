#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/memory_map.h"
#include "checkpoint/checkpoint.h"

namespace verbatim {

struct GgufArray;

/// A metadata value. Integers of every width are widened, signed ones to int64_t and unsigned ones to
/// uint64_t.
struct GgufValue {
  std::variant<bool, int64_t, uint64_t, double, std::string, std::shared_ptr<GgufArray>> value;
};

/// A metadata array. One of the three vectors is filled, by the type of the elements; booleans are stored as
/// integers.
struct GgufArray {
  std::vector<std::string> strings;
  std::vector<int64_t> integers;
  std::vector<double> floats;
};

/// A GGUF file of version 2 or 3, checked and mapped, or several that a model is split into.
struct GgufFile {
  /// The mapped file, or all parts of a split one, the first of which has the metadata.
  std::vector<std::shared_ptr<const MemoryMap>> files;
  uint32_t version = 0;
  std::span<const std::byte> metadata_bytes;  ///< the bytes of the file that `metadata` was read from
  std::map<std::string, GgufValue> metadata;
  /// The tensors by the file's own names ("blk.0.attn_q.weight"). Shapes are row-major: {outputs, inputs}.
  std::map<std::string, TensorView> tensors;
};

/// Maps and checks a GGUF file, and with any part of a split model all parts, which lie beside it
/// (gguf_parts.h). A file without tensors is accepted: it holds a vocabulary. Throws
/// Error(kBadInput), naming the file, if it is malformed.
GgufFile open_gguf(const std::filesystem::path& path);

/// Checks bytes as open_gguf() checks a file. The caller keeps them alive; `where` names them in errors.
GgufFile parse_gguf(std::span<const std::byte> bytes, const std::string& where);

/// The bytes of a GGUF file with the metadata of `gguf` and no tensors.
std::string gguf_without_tensors(const GgufFile& gguf);

// Typed look-ups of metadata: nothing when the key is absent, Error(kBadInput) naming the key when its value
// is of another type.

std::optional<std::string> gguf_string(const GgufFile& gguf, const std::string& key);
std::optional<int64_t> gguf_integer(const GgufFile& gguf, const std::string& key);
/// Looks up a number, which may be stored as an integer.
std::optional<double> gguf_float(const GgufFile& gguf, const std::string& key);
std::optional<bool> gguf_bool(const GgufFile& gguf, const std::string& key);
/// Looks up an array; returns nullptr if it is absent.
std::shared_ptr<const GgufArray> gguf_array(const GgufFile& gguf, const std::string& key);

}  // namespace verbatim
