#include "checkpoint/gguf.h"

#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/gguf_blocks.h"
#include "checkpoint/gguf_parts.h"
#include "checkpoint/gguf_types.h"
#include "checkpoint/layout.h"

namespace verbatim {

static_assert(std::endian::native == std::endian::little, "model files are read as they lie");

namespace {

enum class ValueType : uint32_t {
  kUint8 = 0,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// The most elements of an array: more than any vocabulary has. It limits the memory for a file's metadata.
constexpr uint64_t kLongestArray = uint64_t{1} << 26;
constexpr uint64_t kLongestName = 1 << 16;

/// A position in the file that never moves past its end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  const std::string& where() const { return where_; }
  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  template <typename T>
  T read(const char* what) {
    if (remaining() < sizeof(T)) {
      bad_input("{}: the file ends within {} (byte {}); it is truncated or damaged", where_, what, position_);
    }
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  std::string read_string(const char* what, uint64_t longest = std::numeric_limits<uint64_t>::max()) {
    const auto length = read<uint64_t>(what);
    if (length > remaining() || length > longest) {
      bad_input("{}: the length {} of {} (byte {}) is beyond the file; it is truncated or damaged", where_,
                length, what, position_ - sizeof(uint64_t));
    }
    std::string text(reinterpret_cast<const char*>(bytes_.data() + position_), length);
    position_ += length;
    return text;
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& where_;
  uint64_t position_ = 0;
};

/// The fewest bytes that a value of a type takes; 0 for types that cannot be elements of an array.
uint64_t smallest_size(ValueType type) {
  switch (type) {
    case ValueType::kUint8:
    case ValueType::kInt8:
    case ValueType::kBool:
      return 1;
    case ValueType::kUint16:
    case ValueType::kInt16:
      return 2;
    case ValueType::kUint32:
    case ValueType::kInt32:
    case ValueType::kFloat32:
      return 4;
    case ValueType::kUint64:
    case ValueType::kInt64:
    case ValueType::kFloat64:
    case ValueType::kString:
      return 8;
    case ValueType::kArray:
      return 0;
  }
  return 0;
}

bool read_bool(Cursor& cursor, const std::string& key) {
  const auto value = cursor.read<uint8_t>("a boolean");
  if (value > 1) bad_input("{}: {} is neither true nor false but {}", cursor.where(), printable(key), value);
  return value == 1;
}

/// Reads an element of an array, or any value that is not an array.
GgufValue read_scalar(Cursor& cursor, ValueType type, const std::string& key) {
  constexpr const char* kWhat = "a metadata value";
  switch (type) {
    case ValueType::kUint8:
      return {uint64_t{cursor.read<uint8_t>(kWhat)}};
    case ValueType::kInt8:
      return {int64_t{cursor.read<int8_t>(kWhat)}};
    case ValueType::kUint16:
      return {uint64_t{cursor.read<uint16_t>(kWhat)}};
    case ValueType::kInt16:
      return {int64_t{cursor.read<int16_t>(kWhat)}};
    case ValueType::kUint32:
      return {uint64_t{cursor.read<uint32_t>(kWhat)}};
    case ValueType::kInt32:
      return {int64_t{cursor.read<int32_t>(kWhat)}};
    case ValueType::kUint64:
      return {cursor.read<uint64_t>(kWhat)};
    case ValueType::kInt64:
      return {cursor.read<int64_t>(kWhat)};
    case ValueType::kFloat32:
      return {double{cursor.read<float>(kWhat)}};
    case ValueType::kFloat64:
      return {cursor.read<double>(kWhat)};
    case ValueType::kBool:
      return {read_bool(cursor, key)};
    case ValueType::kString:
      return {cursor.read_string("a metadata string")};
    case ValueType::kArray:
      break;
  }
  bad_input("{}: {} has the unknown value type {}", cursor.where(), printable(key),
            static_cast<uint32_t>(type));
}

int64_t as_int64(uint64_t value, const std::string& where, const std::string& key) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    bad_input("{}: {} holds {}, which is too large", where, printable(key), value);
  }
  return static_cast<int64_t>(value);
}

std::shared_ptr<GgufArray> read_array(Cursor& cursor, const std::string& key) {
  const auto type = static_cast<ValueType>(cursor.read<uint32_t>("an array's type"));
  const auto count = cursor.read<uint64_t>("an array's length");
  if (type == ValueType::kArray) {
    bad_input("{}: {} is an array of arrays, which is not supported", cursor.where(), printable(key));
  }
  const uint64_t size = smallest_size(type);
  if (size == 0) {
    bad_input("{}: {} is an array of the unknown type {}", cursor.where(), printable(key),
              static_cast<uint32_t>(type));
  }
  if (count > kLongestArray || count > cursor.remaining() / size) {
    bad_input("{}: the array {} claims {} elements, more than the file holds; it is truncated or damaged",
              cursor.where(), printable(key), count);
  }
  auto array = std::make_shared<GgufArray>();
  if (type == ValueType::kString) {
    array->strings.reserve(count);
    for (uint64_t i = 0; i < count; ++i) array->strings.push_back(cursor.read_string("a string of an array"));
    return array;
  }
  const bool floats = type == ValueType::kFloat32 || type == ValueType::kFloat64;
  floats ? array->floats.reserve(count) : array->integers.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const GgufValue element = read_scalar(cursor, type, key);
    if (const double* number = std::get_if<double>(&element.value)) {
      array->floats.push_back(*number);
    } else if (const bool* boolean = std::get_if<bool>(&element.value)) {
      array->integers.push_back(*boolean);
    } else if (const uint64_t* natural = std::get_if<uint64_t>(&element.value)) {
      array->integers.push_back(as_int64(*natural, cursor.where(), key));
    } else {
      array->integers.push_back(std::get<int64_t>(element.value));
    }
  }
  return array;
}

void check_preamble(Cursor& cursor, GgufFile& gguf) {
  const std::string& where = cursor.where();
  if (cursor.remaining() < 4 || cursor.read<uint32_t>("the magic") != 0x46554747u) {  // "GGUF"
    bad_input("{} is not a GGUF file", where);
  }
  gguf.version = cursor.read<uint32_t>("the version");
  if (gguf.version != 0 && (gguf.version & 0xffffu) == 0) {
    bad_input("{} is a big-endian GGUF file, which is not supported; convert it to little-endian", where);
  }
  if (gguf.version != 2 && gguf.version != 3) {
    bad_input(
        "{} is GGUF version {}; versions 2 and 3 are supported, so convert it again with a current tool",
        where, gguf.version);
  }
}

DType tensor_dtype(uint32_t number, const std::string& name, const std::string& where) {
  const std::optional<DType> dtype = gguf_dtype(number);
  if (dtype) return *dtype;
  bad_input("{}: tensor {} has the type {}, which cannot be read; use a file of one of these types: {}",
            where, printable(name), gguf_type_name(number), gguf_readable_types());
}

struct TensorEntry {
  std::string name;
  TensorView view;
  uint64_t offset = 0;  // from the start of the data
  uint64_t bytes = 0;
};

TensorEntry read_tensor_entry(Cursor& cursor) {
  const std::string& where = cursor.where();
  TensorEntry entry;
  entry.name = cursor.read_string("a tensor's name", kLongestName);
  const auto dimensions = cursor.read<uint32_t>("a tensor's dimensions");
  if (dimensions < 1 || dimensions > 4) {
    bad_input("{}: tensor {} has {} dimensions; 1 to 4 are possible", where, printable(entry.name),
              dimensions);
  }
  entry.view.shape.resize(dimensions);
  for (uint32_t i = 0; i < dimensions; ++i) {  // the file puts the fastest dimension first
    const int64_t size = as_int64(cursor.read<uint64_t>("a tensor's shape"), where, entry.name);
    if (size == 0) bad_input("{}: tensor {} has a dimension of 0", where, printable(entry.name));
    entry.view.shape[dimensions - 1 - i] = size;
  }
  entry.view.dtype = tensor_dtype(cursor.read<uint32_t>("a tensor's type"), entry.name, where);
  entry.offset = cursor.read<uint64_t>("a tensor's offset");
  const std::optional<uint64_t> bytes = stored_bytes(entry.view.dtype, entry.view.shape);
  if (!bytes) {
    const BlockType* const block = block_type(entry.view.dtype);
    bad_input("{}: tensor {} cannot have the shape {} as {}{}", where, printable(entry.name),
              shape_text(entry.view.shape), dtype_name(entry.view.dtype),
              block == nullptr ? "" : fmt::format(", whose blocks have {} elements", block->elements));
  }
  entry.bytes = *bytes;
  return entry;
}

const GgufValue* find_value(const GgufFile& gguf, const std::string& key) {
  const auto found = gguf.metadata.find(key);
  return found == gguf.metadata.end() ? nullptr : &found->second;
}

[[noreturn]] void wrong_type(const std::string& where, const std::string& key, const char* expected) {
  bad_input("{}: the metadata {} should be {}", where, printable(key), expected);
}

std::optional<int64_t> find_integer(const GgufFile& gguf, const std::string& key, const std::string& where) {
  const GgufValue* found = find_value(gguf, key);
  if (found == nullptr) return std::nullopt;
  if (const auto* integer = std::get_if<int64_t>(&found->value)) return *integer;
  if (const auto* natural = std::get_if<uint64_t>(&found->value)) return as_int64(*natural, where, key);
  wrong_type(where, key, "an integer");
}

/// The file's name for errors.
std::string place(const GgufFile& gguf) {
  return gguf.files.empty() ? "GGUF" : gguf.files.front()->path().string();
}

uint64_t data_alignment(const GgufFile& gguf, const std::string& where) {
  const std::optional<int64_t> alignment = find_integer(gguf, "general.alignment", where);
  if (!alignment) return 32;
  if (*alignment < 1 || *alignment > (1 << 20) || !std::has_single_bit(static_cast<uint64_t>(*alignment))) {
    bad_input("{}: general.alignment is {}; it must be a power of two up to 1048576", where, *alignment);
  }
  return static_cast<uint64_t>(*alignment);
}

void place_tensors(std::span<const std::byte> bytes, std::vector<TensorEntry>& entries, uint64_t header_end,
                   GgufFile& gguf, const std::string& where) {
  const uint64_t alignment = data_alignment(gguf, where);
  const uint64_t data_begin = (header_end + alignment - 1) / alignment * alignment;
  std::vector<Extent> extents;
  for (TensorEntry& entry : entries) {
    if (entry.offset % alignment != 0) {
      bad_input("{}: tensor {} starts at {}, which is not a multiple of the alignment {}", where,
                printable(entry.name), entry.offset, alignment);
    }
    const uint64_t data_size = bytes.size() > data_begin ? bytes.size() - data_begin : 0;
    if (entry.offset > data_size || entry.bytes > data_size - entry.offset) {
      bad_input("{}: tensor {} {} lies beyond the end of the file; it is truncated or damaged", where,
                printable(entry.name), shape_text(entry.view.shape));
    }
    entry.view.data = bytes.subspan(data_begin + entry.offset, entry.bytes);
    extents.push_back({entry.offset, entry.offset + entry.bytes, entry.name});
    if (!gguf.tensors.emplace(entry.name, std::move(entry.view)).second) {
      bad_input("{}: tensor {} is there twice", where, printable(entry.name));
    }
  }
  check_no_overlap(std::move(extents), where);
}

}  // namespace

GgufFile parse_gguf(std::span<const std::byte> bytes, const std::string& where) {
  GgufFile gguf;
  Cursor cursor(bytes, where);
  check_preamble(cursor, gguf);
  const auto tensor_count = cursor.read<uint64_t>("the number of tensors");
  const auto metadata_count = cursor.read<uint64_t>("the number of metadata");
  const uint64_t metadata_begin = cursor.position();
  for (uint64_t i = 0; i < metadata_count; ++i) {
    const std::string key = cursor.read_string("a metadata key", kLongestName);
    const auto type = static_cast<ValueType>(cursor.read<uint32_t>("a metadata type"));
    GgufValue value =
        type == ValueType::kArray ? GgufValue{read_array(cursor, key)} : read_scalar(cursor, type, key);
    if (!gguf.metadata.emplace(key, std::move(value)).second) {
      bad_input("{}: the metadata {} is there twice", where, printable(key));
    }
  }
  gguf.metadata_bytes = bytes.subspan(metadata_begin, cursor.position() - metadata_begin);
  std::vector<TensorEntry> entries;
  for (uint64_t i = 0; i < tensor_count; ++i) entries.push_back(read_tensor_entry(cursor));
  place_tensors(bytes, entries, cursor.position(), gguf, where);
  return gguf;
}

std::string gguf_without_tensors(const GgufFile& gguf) {
  const auto append = [](std::string& out, const void* bytes, size_t count) {
    out.append(static_cast<const char*>(bytes), count);
  };
  const uint64_t tensor_count = 0;
  const uint64_t metadata_count = gguf.metadata.size();
  std::string out = "GGUF";
  append(out, &gguf.version, sizeof(gguf.version));
  append(out, &tensor_count, sizeof(tensor_count));
  append(out, &metadata_count, sizeof(metadata_count));
  append(out, gguf.metadata_bytes.data(), gguf.metadata_bytes.size());
  return out;
}

GgufFile open_gguf(const std::filesystem::path& path) {
  auto file = std::make_shared<const MemoryMap>(path);
  GgufFile gguf = parse_gguf(file->bytes(), path.string());
  gguf.files.push_back(std::move(file));
  if (gguf_part_count(gguf, path.string()) > 1) return open_gguf_parts(path, std::move(gguf));
  return gguf;
}

std::optional<std::string> gguf_string(const GgufFile& gguf, const std::string& key) {
  const GgufValue* found = find_value(gguf, key);
  if (found == nullptr) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&found->value)) return *text;
  wrong_type(place(gguf), key, "a string");
}

std::optional<int64_t> gguf_integer(const GgufFile& gguf, const std::string& key) {
  return find_integer(gguf, key, place(gguf));
}

std::optional<double> gguf_float(const GgufFile& gguf, const std::string& key) {
  const GgufValue* found = find_value(gguf, key);
  if (found == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<double>(&found->value)) return *number;
  if (const auto* integer = std::get_if<int64_t>(&found->value)) return static_cast<double>(*integer);
  if (const auto* natural = std::get_if<uint64_t>(&found->value)) return static_cast<double>(*natural);
  wrong_type(place(gguf), key, "a number");
}

std::optional<bool> gguf_bool(const GgufFile& gguf, const std::string& key) {
  const GgufValue* found = find_value(gguf, key);
  if (found == nullptr) return std::nullopt;
  if (const auto* boolean = std::get_if<bool>(&found->value)) return *boolean;
  wrong_type(place(gguf), key, "true or false");
}

std::shared_ptr<const GgufArray> gguf_array(const GgufFile& gguf, const std::string& key) {
  const GgufValue* found = find_value(gguf, key);
  if (found == nullptr) return nullptr;
  if (const auto* array = std::get_if<std::shared_ptr<GgufArray>>(&found->value)) return *array;
  wrong_type(place(gguf), key, "an array");
}

}  // namespace verbatim
