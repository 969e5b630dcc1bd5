#include "container/container.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/crc64.h"
#include "base/error.h"
#include "base/matrix.h"
#include "base/printable.h"
#include "checkpoint/layout.h"
#include "container/container_header.h"
#include "container/preamble.h"
#include "model/weights.h"

namespace verbatim {

namespace {

/// The most bytes of a header: more than all layers of the deepest model in all formats need.
constexpr uint64_t kLongestHeader = uint64_t{64} << 20;
constexpr size_t kBlockBytes = size_t{16} << 20;

[[noreturn]] void damaged(const std::string& where, const char* what) {
  bad_input("{}: {}; the file is damaged, pack the model again", where, what);
}

/// The header's text, after everything before it was checked.
std::string_view find_header(std::span<const std::byte> bytes, const std::string& where) {
  Preamble preamble;
  if (bytes.size() < sizeof(preamble)) {
    if (bytes.size() < kPackedMagic.size() ||
        std::memcmp(bytes.data(), kPackedMagic.data(), kPackedMagic.size()) != 0) {
      bad_input("{} is no packed model", where);
    }
    damaged(where, "it ends within its first 64 bytes");
  }
  std::memcpy(&preamble, bytes.data(), sizeof(preamble));
  if (std::memcmp(preamble.magic, kPackedMagic.data(), kPackedMagic.size()) != 0) {
    bad_input("{} is no packed model", where);
  }
  if (preamble.version != kContainerVersion) {
    bad_input("{} is a packed model of version {}; this program reads version {}, so pack the model again",
              where, preamble.version, kContainerVersion);
  }
  if (preamble.checksum != preamble.own_checksum()) damaged(where, "its first 64 bytes are not as written");
  if (preamble.file_bytes != bytes.size()) {
    bad_input("{} has {} bytes where it was written with {}; it is truncated or damaged", where, bytes.size(),
              preamble.file_bytes);
  }
  if (preamble.header_bytes > kLongestHeader || preamble.header_bytes > bytes.size() - kPreambleBytes ||
      preamble.header_offset != bytes.size() - preamble.header_bytes) {
    damaged(where, "its header does not lie at its end");
  }
  const auto header = bytes.subspan(preamble.header_offset, preamble.header_bytes);
  if (crc64(header) != preamble.header_checksum) damaged(where, "its header is not as written");
  return {reinterpret_cast<const char*>(header.data()), header.size()};
}

/// Checks that all planes lie before the header, which begins at `end`, and do not overlap.
void check_places(const ContainerHeader& header, uint64_t end, const std::string& where) {
  std::vector<Extent> extents;
  for (const auto& [name, plane] : all_planes(header)) {
    if (plane.offset % kLeastAlignment != 0) {
      bad_input("{}: {} begins at {}, which is not a multiple of {}", where, name, plane.offset,
                kLeastAlignment);
    }
    if (plane.offset < kPreambleBytes || plane.offset > end || plane.bytes > end - plane.offset) {
      bad_input("{}: {} (offset {}, {} bytes) lies outside the room for planes", where, name, plane.offset,
                plane.bytes);
    }
    extents.push_back({plane.offset, plane.offset + plane.bytes, name});
  }
  check_no_overlap(std::move(extents), where);
}

/// Checks that there are exactly the matrices and vectors of the config, each in its shape.
void check_shapes(const ContainerHeader& header, const std::string& where) {
  const ModelConfig& config = header.config;
  const auto embedding =
      stored_bytes(header.embedding_type, std::vector<int64_t>{config.vocab_size, config.hidden_size});
  if (!embedding || *embedding != header.embedding.bytes) {
    bad_input("{}: the embedding has {} bytes, which does not fit its shape", where, header.embedding.bytes);
  }
  const std::vector<MatrixSpec> matrices = matrix_specs(config);
  if (header.matrices.size() != matrices.size()) {
    bad_input("{}: there are {} matrices where the model has {}", where, header.matrices.size(),
              matrices.size());
  }
  for (size_t i = 0; i < matrices.size(); ++i) {
    const StoredMatrix& matrix = header.matrices[i];
    if (matrix.name != matrices[i].name) {
      bad_input("{}: the matrix {} is missing; {} is in its place", where, matrices[i].name,
                printable(matrix.name));
    }
    if (matrix.columns != matrices[i].columns() || matrix.k != matrices[i].k) {
      bad_input("{}: {} is a matrix of {} x {} where the model has {} x {}", where, matrix.name,
                matrix.columns, matrix.k, matrices[i].columns(), matrices[i].k);
    }
    if (matrix.stores.empty()) bad_input("{}: {} is there in no format at all", where, matrix.name);
  }
  const std::vector<VectorSpec> vectors = vector_specs(config);
  if (header.vectors.size() != vectors.size()) {
    bad_input("{}: there are {} vectors where the model has {}", where, header.vectors.size(),
              vectors.size());
  }
  for (size_t i = 0; i < vectors.size(); ++i) {
    const StoredVector& vector = header.vectors[i];
    if (vector.name != vectors[i].name) {
      bad_input("{}: the vector {} is missing; {} is in its place", where, vectors[i].name,
                printable(vector.name));
    }
    const int64_t padded = round_up<int64_t>(vectors[i].length(), kInnerStep);
    if (vector.length != vectors[i].length() ||
        vector.plane.bytes != static_cast<uint64_t>(padded) * sizeof(float)) {
      bad_input("{}: {} has {} numbers in {} bytes where the model has {}", where, vector.name, vector.length,
                vector.plane.bytes, vectors[i].length());
    }
  }
}

void check_tokenizer(const ContainerHeader& header, const std::string& where) {
  const bool expected = header.tokenizer != TokenizerSource::Kind::kNone;
  if (expected == header.tokenizer_files.empty()) {
    bad_input("{}: the vocabulary's kind and its files do not agree", where);
  }
  std::set<std::string> names;
  for (const StoredFile& file : header.tokenizer_files) {
    if (!names.insert(file.name).second) {
      bad_input("{}: the vocabulary's file {} is there twice", where, printable(file.name));
    }
  }
}

void check_padding(const Container& container, uint64_t begin, uint64_t end, const std::string& next) {
  if (end <= begin) return;  // an empty plane may lie where another does
  const auto padding = container.bytes.subspan(begin, end - begin);
  if (std::all_of(padding.begin(), padding.end(), [](std::byte b) { return b == std::byte{0}; })) return;
  bad_input("{}: the padding before {} (offset {}, {} bytes) is not as it was written; pack the model again",
            container.path.string(), next, begin, padding.size());
}

}  // namespace

uint64_t Preamble::own_checksum() const {
  return crc64(std::as_bytes(std::span(this, 1)).first(offsetof(Preamble, checksum)));
}

const StoredFormat* StoredMatrix::find(Format format) const {
  const auto found =
      std::find_if(stores.begin(), stores.end(), [&](const StoredFormat& s) { return s.format == format; });
  return found == stores.end() ? nullptr : &*found;
}

const StoredFormat* StoredMatrix::find_exact() const {
  const auto found = std::find_if(stores.begin(), stores.end(),
                                  [](const StoredFormat& s) { return is_exact(s.format) || s.own; });
  return found == stores.end() ? nullptr : &*found;
}

std::vector<NamedPlane> all_planes(const ContainerHeader& header) {
  std::vector<NamedPlane> planes;
  for (const StoredFile& file : header.tokenizer_files) planes.push_back({printable(file.name), file.plane});
  planes.push_back({"the embedding", header.embedding});
  for (const StoredVector& vector : header.vectors) planes.push_back({printable(vector.name), vector.plane});
  for (const StoredMatrix& matrix : header.matrices) {
    for (const StoredFormat& store : matrix.stores) {
      for (size_t i = 0; i < store.planes.size(); ++i) {
        planes.push_back(
            {fmt::format("plane {} of {} in {}", i, printable(matrix.name), format_name(store.format)),
             store.planes[i]});
      }
    }
  }
  return planes;
}

std::vector<Format> Container::formats() const {
  std::vector<Format> result;
  for (const StoredFormat& store : header.matrices.front().stores) {
    if (std::all_of(header.matrices.begin(), header.matrices.end(),
                    [&](const StoredMatrix& matrix) { return matrix.find(store.format) != nullptr; })) {
      result.push_back(store.format);
    }
  }
  return result;
}

bool Container::exact() const {
  return std::all_of(header.matrices.begin(), header.matrices.end(),
                     [](const StoredMatrix& matrix) { return matrix.find_exact() != nullptr; });
}

Container parse_container(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  const std::string where = path.string();
  const std::string_view header = find_header(bytes, where);
  Container container{.path = path,
                      .file = nullptr,
                      .bytes = bytes,
                      .header = parse_header(header, where),
                      .header_offset = bytes.size() - header.size()};
  check_places(container.header, container.header_offset, where);
  check_shapes(container.header, where);
  check_tokenizer(container.header, where);
  return container;
}

Container open_container(const std::filesystem::path& given) {
  const std::filesystem::path path = packed_file(given);
  auto file = std::make_shared<const MemoryMap>(path);
  Container container = parse_container(file->bytes(), path);
  container.file = std::move(file);
  return container;
}

void verify_container(const Container& container, const std::function<bool(double)>& progress) {
  std::vector<NamedPlane> planes = all_planes(container.header);
  std::stable_sort(planes.begin(), planes.end(),
                   [](const NamedPlane& a, const NamedPlane& b) { return a.plane.offset < b.plane.offset; });
  planes.push_back({"the header", {.offset = container.header_offset}});
  uint64_t done = kPreambleBytes;
  for (const auto& [name, plane] : planes) {
    check_padding(container, done, plane.offset, name);
    done = std::max(done, plane.offset);
    uint64_t sum = 0;
    for (auto left = container.plane(plane); !left.empty();) {
      const auto block = left.first(std::min(left.size(), kBlockBytes));
      sum = crc64(block, sum);
      left = left.subspan(block.size());
      done += block.size();
      if (progress && !progress(static_cast<double>(done) / static_cast<double>(container.bytes.size())))
        return;
    }
    if (sum == plane.checksum) continue;
    bad_input("{}: {} (offset {}, {} bytes) is not as it was written; pack the model again",
              container.path.string(), name, plane.offset, plane.bytes);
  }
}

}  // namespace verbatim
