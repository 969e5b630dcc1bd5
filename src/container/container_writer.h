#pragma once

#include "checkpoint/new_file.h"
#include "container/container.h"
#include "formats/linear.h"

namespace verbatim {

/// Writes a container as a stream: the planes in any order, then the header. The file appears when it is
/// finished, or not at all (NewFile). Failures throw Error(kMachine), or Error(kBadInput) when no file can be
/// made there.
class ContainerWriter {
 public:
  /// `alignment` is a multiple of kLeastAlignment.
  explicit ContainerWriter(const std::filesystem::path& target, size_t alignment = kPageAlignment);

  StoredPlane add(std::span<const std::byte> bytes);
  /// A matrix with its stores as they are.
  StoredMatrix add(const std::string& name, const LinearWeight& weight);
  /// The header's planes are those that add() returned.
  void finish(const ContainerHeader& header);
  /// Bytes written so far; the size of the file once it is finished.
  uint64_t bytes() const { return position_; }

 private:
  void write(std::span<const std::byte> bytes);

  NewFile file_;
  size_t alignment_;
  uint64_t position_ = 0;
};

}  // namespace verbatim
