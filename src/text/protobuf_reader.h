#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace verbatim {

/// One field of a serialized protocol buffer message.
struct ProtobufField {
  uint32_t number = 0;
  uint32_t wire_type = 0;  ///< 0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes
  uint64_t value = 0;      ///< the bits of a number
  std::string_view bytes;  ///< the contents of a length-delimited field
};

/// Walks through the fields of a message.
class ProtobufReader {
 public:
  /// `bytes` must outlive the reader; `where` names them in errors.
  ProtobufReader(std::string_view bytes, const std::string& where) : rest_(bytes), where_(&where) {}
  /// Reads the next field. Returns false at the end of the message. Throws Error(kBadInput) if the message is
  /// malformed.
  bool next(ProtobufField& field);

 private:
  uint64_t read_varint();
  std::string_view take(uint64_t count);

  std::string_view rest_;
  const std::string* where_;
};

}  // namespace verbatim
