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

// The packed container, a .vbt file: a model with its weights packed and its vocabulary, to be mapped and run
// as it lies. docs/container.md describes the layout:
//   preamble   64 bytes: magic, version, where the header is, checksums
//   planes     each at a multiple of a page, zeros between them
//   header     JSON: the config and what every plane is

inline constexpr uint32_t kContainerVersion = 2;
inline constexpr size_t kPreambleBytes = 64;
/// Planes begin at multiples of it. Readers take any multiple of kLeastAlignment.
inline constexpr size_t kPageAlignment = 4096;
inline constexpr size_t kLeastAlignment = 64;

/// A run of bytes of the file.
struct StoredPlane {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t checksum = 0;  ///< crc64()
};

/// A matrix in one format.
struct StoredFormat {
  Format format = Format::kBf16;
  Element element = Element::kBf16;
  std::vector<StoredPlane> planes;
};

struct StoredMatrix {
  std::string name;  ///< that of its MatrixSpec
  int64_t columns = 0;
  int64_t k = 0;
  std::vector<StoredFormat> stores;

  /// The store of a format, or null.
  const StoredFormat* find(Format format) const;
  /// The first store that holds the model's own weights bit for bit, or null.
  const StoredFormat* find_exact() const;
};

/// A vector in F32, padded with zeros to a multiple of 32.
struct StoredVector {
  std::string name;  ///< that of its VectorSpec
  int64_t length = 0;
  StoredPlane plane;
};

/// A file that the vocabulary is made of.
struct StoredFile {
  std::string name;
  StoredPlane plane;
};

struct ContainerHeader {
  ModelConfig config;
  std::string source;  ///< Checkpoint::format of what was packed
  TokenizerSource::Kind tokenizer = TokenizerSource::Kind::kNone;
  std::vector<StoredFile> tokenizer_files;
  DType embedding_type = DType::kBF16;
  StoredPlane embedding;
  std::vector<StoredVector> vectors;
  std::vector<StoredMatrix> matrices;
  std::vector<std::string> warnings;  ///< what packing had to warn of, without the name of the file
};

/// A plane with what a person would call it ("plane 2 of layers.3.down in mxbf16").
struct NamedPlane {
  std::string name;
  StoredPlane plane;
};
/// All of them, in the order of the header.
std::vector<NamedPlane> all_planes(const ContainerHeader& header);

/// An opened container. Every plane lies in the file, none over another, and the matrices, the vectors and
/// the embedding are those of the config, in its shapes. What is in the planes, and whether the formats'
/// planes have the right sizes, is for load_weights() to find out.
struct Container {
  std::filesystem::path path;
  std::shared_ptr<const MemoryMap> file;  ///< keeps the bytes alive; null where the caller does
  std::span<const std::byte> bytes;
  ContainerHeader header;
  uint64_t header_offset = 0;  ///< where the room for planes ends

  std::span<const std::byte> plane(const StoredPlane& plane) const {
    return bytes.subspan(plane.offset, plane.bytes);
  }
  /// The formats that every matrix is in, in the file's order.
  std::vector<Format> formats() const;
  /// Whether every matrix has a store that is exact.
  bool exact() const;
};

/// Maps a file, or the one in a folder (packed_file()), and checks it: its checksum of the header, not those
/// of the planes. Throws Error(kBadInput) with one line on what is wrong.
Container open_container(const std::filesystem::path& path);

/// The same over bytes that the caller keeps alive, which begin at a multiple of kLeastAlignment.
Container parse_container(std::span<const std::byte> bytes, const std::filesystem::path& path);

/// Compares every plane with its checksum and what lies between them with zeros: with what opening checks,
/// not a bit of the file is left out. `progress` is told the fraction done, and ends the work by returning
/// false. Throws Error(kBadInput) naming the first plane that differs.
void verify_container(const Container& container, const std::function<bool(double)>& progress);

}  // namespace verbatim
