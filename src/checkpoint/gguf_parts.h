#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/gguf.h"

namespace verbatim {

/// The name of a part of a model that is split into several GGUF files, NAME-00001-of-00003.gguf.
struct GgufPartName {
  std::string stem;    ///< NAME
  int64_t number = 0;  ///< from 1
  int64_t count = 0;   ///< how many parts there are

  std::string text() const;
};

/// Takes the name of a part apart. Returns nothing if it is none.
std::optional<GgufPartName> parse_gguf_part_name(const std::string& file_name);

/// The number of files that the model of `gguf` is split into, as it says itself; 1 for a whole one. Throws
/// Error(kBadInput), naming the file `where`, for a number that is not possible.
int64_t gguf_part_count(const GgufFile& gguf, const std::string& where);

/// A part that was read, and its name in errors.
struct GgufPart {
  GgufFile gguf;
  std::string where;
};

/// Joins all parts of a model, in their order. The result has the metadata of the first part and the tensors
/// of all. Throws Error(kBadInput), naming the part at fault, if they are not the parts of one model.
GgufFile join_gguf_parts(std::vector<GgufPart> parts);

/// Opens all parts of a model that lie beside one of them, which is open already.
GgufFile open_gguf_parts(const std::filesystem::path& path, GgufFile opened);

}  // namespace verbatim
