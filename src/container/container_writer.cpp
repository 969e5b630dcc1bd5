#include "container/container_writer.h"

#include "base/crc64.h"
#include "base/matrix.h"
#include "container/container_header.h"
#include "container/preamble.h"

namespace verbatim {

ContainerWriter::ContainerWriter(const std::filesystem::path& target, size_t alignment)
    : file_(target), alignment_(alignment) {
  const Preamble later;  // without magic: no reader takes the file for a finished one
  write(std::as_bytes(std::span(&later, 1)));
}

void ContainerWriter::write(std::span<const std::byte> bytes) {
  file_.out().write(bytes);
  position_ += bytes.size();
}

StoredPlane ContainerWriter::add(std::span<const std::byte> bytes) {
  const std::vector<std::byte> padding(round_up<uint64_t>(position_, alignment_) - position_);
  write(padding);
  const StoredPlane plane{.offset = position_, .bytes = bytes.size(), .checksum = crc64(bytes)};
  write(bytes);
  return plane;
}

StoredMatrix ContainerWriter::add(const std::string& name, const LinearWeight& weight) {
  StoredMatrix matrix{.name = name, .columns = weight.columns, .k = weight.k, .stores = {}};
  for (const PackedMatrix& store : weight.stores) {
    StoredFormat& stored = matrix.stores.emplace_back(
        StoredFormat{.format = store.format, .element = store.element, .own = store.own, .planes = {}});
    for (const Plane& plane : store.planes) stored.planes.push_back(add(plane.bytes()));
  }
  return matrix;
}

void ContainerWriter::finish(const ContainerHeader& header) {
  const std::string text = header_json(header);
  Preamble preamble;
  std::memcpy(preamble.magic, kPackedMagic.data(), kPackedMagic.size());
  preamble.header_offset = position_;
  preamble.header_bytes = text.size();
  preamble.header_checksum = crc64(std::as_bytes(std::span(text)));
  write(std::as_bytes(std::span(text)));
  preamble.file_bytes = position_;
  preamble.checksum = preamble.own_checksum();
  file_.out().write_at(0, std::as_bytes(std::span(&preamble, 1)));
  file_.keep();
}

}  // namespace verbatim
