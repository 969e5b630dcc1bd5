#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory_map.h"
#include "checkpoint/checkpoint.h"
#include "formats/packed_matrix.h"

namespace verbatim {

// The packed container, a .vbt file: a model with packed weights and its vocabulary, which is mapped and used
// in place. docs/container.md describes the layout:
//   preamble   64 bytes: magic, version, the place of the header, checksums
//   planes     each at a multiple of a page, zeros between them
//   header     JSON: the config and a description of every plane

inline constexpr uint32_t kContainerVersion = 2;
inline constexpr size_t kPreambleBytes = 64;
/// The alignment of planes that writers use.
inline constexpr size_t kPageAlignment = 4096;
/// The alignment of planes that readers demand.
inline constexpr size_t kLeastAlignment = 64;

/// A plane in the file: a run of bytes and its checksum.
struct StoredPlane {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t checksum = 0;  ///< crc64()
};

/// A store in the file: a matrix in one format.
struct StoredFormat {
  Format format = Format::kBf16;
  Element element = Element::kBf16;
  bool own = false;  ///< PackedMatrix::own
  std::vector<StoredPlane> planes;
};

/// A matrix in the file, with all of its stores.
struct StoredMatrix {
  std::string name;  ///< the name of its MatrixSpec
  int64_t columns = 0;
  int64_t k = 0;
  std::vector<StoredFormat> stores;

  /// The store of a format, or null.
  const StoredFormat* find(Format format) const;
  /// The first store that holds the model's own weights bit for bit, or null.
  const StoredFormat* find_exact() const;
};

/// A vector in the file, in F32 and padded with zeros to a multiple of 32.
struct StoredVector {
  std::string name;  ///< the name of its VectorSpec
  int64_t length = 0;
  StoredPlane plane;
};

/// A file of the vocabulary, whole, inside the container.
struct StoredFile {
  std::string name;
  StoredPlane plane;
};

/// The header of a container: the config and a description of every plane.
struct ContainerHeader {
  ModelConfig config;
  std::string source;  ///< the Checkpoint::format of the model that was packed
  TokenizerSource::Kind tokenizer = TokenizerSource::Kind::kNone;
  std::vector<StoredFile> tokenizer_files;
  DType embedding_type = DType::kBF16;
  StoredPlane embedding;
  std::vector<StoredVector> vectors;
  std::vector<StoredMatrix> matrices;
  std::vector<std::string> warnings;  ///< the warnings of packing, without the name of the file
};

/// A plane and its name for people ("plane 2 of layers.3.down in mxbf16").
struct NamedPlane {
  std::string name;
  StoredPlane plane;
};
/// All planes of a container, in the order of the header.
std::vector<NamedPlane> all_planes(const ContainerHeader& header);

/// An opened container. All planes lie within the file and do not overlap, and the matrices, the vectors and
/// the embedding are those of the config, in its shapes. The sizes of the formats' planes and their contents
/// are not checked yet; load_weights() checks them.
struct Container {
  std::filesystem::path path;
  std::shared_ptr<const MemoryMap> file;  ///< keeps `bytes` alive; null if the caller keeps them alive
  std::span<const std::byte> bytes;
  ContainerHeader header;
  uint64_t header_offset = 0;  ///< the place of the header, which comes after all planes

  std::span<const std::byte> plane(const StoredPlane& plane) const {
    return bytes.subspan(plane.offset, plane.bytes);
  }
  /// The formats that every matrix has a store of, in the file's order.
  std::vector<Format> formats() const;
  /// Whether every matrix has a lossless store.
  bool exact() const;
};

/// Maps a container, a file or the one in a folder (packed_file()), and checks everything but the contents of
/// planes, including the checksum of the header. Throws Error(kBadInput) if something is wrong.
Container open_container(const std::filesystem::path& path);

/// Checks bytes as open_container() checks a file. The caller keeps them alive; they begin at a multiple of
/// kLeastAlignment. `path` names them in errors.
Container parse_container(std::span<const std::byte> bytes, const std::filesystem::path& path);

/// Compares every plane with its checksum, and the bytes between planes with zeros. Together with the checks
/// of opening it leaves out no bit of the file. `progress` is called with the fraction done, and returns
/// false to end the work. Throws Error(kBadInput) naming the first plane that differs.
void verify_container(const Container& container, const std::function<bool(double)>& progress);

}  // namespace verbatim
