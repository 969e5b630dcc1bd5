#pragma once

#include "base/new_file.h"
#include "container/container.h"
#include "formats/linear.h"

namespace verbatim {

/// Writes a container as a stream: the planes in any order, then the header. The file appears when it is
/// finished, or not at all (NewFile). All members throw Error(kMachine) if writing fails; the constructor
/// throws Error(kBadInput) if no file can be made at the target.
class ContainerWriter {
 public:
  /// `alignment` is a multiple of kLeastAlignment.
  explicit ContainerWriter(const std::filesystem::path& target, size_t alignment = kPageAlignment);

  /// Writes a plane.
  StoredPlane add(std::span<const std::byte> bytes);
  /// Writes all planes of a matrix's stores.
  StoredMatrix add(const std::string& name, const LinearWeight& weight);
  /// Writes the header, whose planes must be those that add() returned, and ends the file.
  void finish(const ContainerHeader& header);
  /// The number of bytes written so far; after finish(), the size of the file.
  uint64_t bytes() const { return position_; }

 private:
  void write(std::span<const std::byte> bytes);

  NewFile file_;
  size_t alignment_;
  uint64_t position_ = 0;
};

}  // namespace verbatim
