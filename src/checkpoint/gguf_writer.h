#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/new_file.h"
#include "checkpoint/safetensors_writer.h"

namespace verbatim {

/// Metadata of a GGUF file, in the order in which they are added.
class GgufMetadata {
 public:
  void add(std::string_view key, std::string_view text);
  void add(std::string_view key, const char* text) { add(key, std::string_view(text)); }
  void add(std::string_view key, int32_t number);  ///< of a natural number, which files store without sign
  void add(std::string_view key, float number);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::span<const std::string> texts);
  void add(std::string_view key, std::span<const float> numbers);
  void add(std::string_view key, std::span<const int32_t> numbers);

  const std::string& bytes() const { return bytes_; }
  uint64_t count() const { return count_; }

 private:
  void begin(std::string_view key, uint32_t type);
  void append_text(std::string_view text);
  template <typename T>
  void append(T value);

  std::string bytes_;
  uint64_t count_ = 0;
};

/// Writes a GGUF file of version 3 as a stream, so that a file may be larger than the memory. It appears
/// under its name with keep(), or not at all.
class GgufWriter {
 public:
  /// Makes the file under its temporary name and writes all but the tensors' bytes. Throws Error(kBadInput)
  /// if there is a file of that name already, and Error(kMachine) when writing fails.
  GgufWriter(const std::filesystem::path& target, const GgufMetadata& metadata,
             std::span<const TensorEntry> tensors);

  /// Writes the next bytes of the tensors, in their order. A call may end in the middle of a tensor, and ends
  /// with a tensor at the latest.
  void write(std::span<const std::byte> bytes);
  /// The path of the file until keep(), under its temporary name.
  const std::filesystem::path& path() const { return file_.path(); }
  /// Gives the file its name. Throws Error(kUsage) unless the bytes of all tensors were written.
  void keep();

 private:
  void pad(uint64_t written);

  NewFile file_;
  std::vector<uint64_t> left_;  // the number of bytes that each tensor still lacks
  size_t tensor_ = 0;           // the one in work
  uint64_t written_ = 0;        // of its bytes
};

}  // namespace verbatim
