#include "text/protobuf_reader.h"

#include <cstring>

#include "base/error.h"

namespace verbatim {

std::string_view ProtobufReader::take(uint64_t count) {
  if (count > rest_.size()) bad_input("{}: the file is cut short or is not a SentencePiece model", *where_);
  const std::string_view bytes = rest_.substr(0, count);
  rest_.remove_prefix(count);
  return bytes;
}

uint64_t ProtobufReader::read_varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  bad_input("{}: the file is damaged or is not a SentencePiece model", *where_);
}

bool ProtobufReader::next(ProtobufField& field) {
  if (rest_.empty()) return false;
  const uint64_t tag = read_varint();
  field = {};
  field.number = static_cast<uint32_t>(tag >> 3);
  field.wire_type = static_cast<uint32_t>(tag & 7);
  if (field.wire_type == 0) {
    field.value = read_varint();
  } else if (field.wire_type == 2) {
    field.bytes = take(read_varint());
  } else if (field.wire_type == 1 || field.wire_type == 5) {
    const std::string_view bytes = take(field.wire_type == 1 ? 8 : 4);
    std::memcpy(&field.value, bytes.data(), bytes.size());
  } else {
    bad_input("{}: the file is damaged or is not a SentencePiece model", *where_);
  }
  if (field.number == 0) bad_input("{}: the file is damaged or is not a SentencePiece model", *where_);
  return true;
}

}  // namespace verbatim
