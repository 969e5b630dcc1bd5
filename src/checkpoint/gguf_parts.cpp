#include "checkpoint/gguf_parts.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace verbatim {

namespace fs = std::filesystem;

namespace {

constexpr const char* kNumber = "split.no";  // from 0, where names count from 1
constexpr const char* kCount = "split.count";
constexpr const char* kTensors = "split.tensors.count";
constexpr int64_t kMostParts = 99999;  // as many as names have numbers for
constexpr size_t kDigits = 5;

std::optional<int64_t> parse_digits(std::string_view text) {
  int64_t number = 0;
  if (!std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

int64_t required(const GgufFile& gguf, const char* key, const std::string& where) {
  const std::optional<int64_t> number = gguf_integer(gguf, key);
  if (!number) {
    bad_input(
        "{}: a part of a split model without the metadata {}; it is damaged or was split by another "
        "tool",
        where, key);
  }
  return *number;
}

/// Compares bits, as a number may be none (NaN).
bool same_number(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

bool same_array(const GgufArray& a, const GgufArray& b) {
  return a.strings == b.strings && a.integers == b.integers &&
         std::ranges::equal(a.floats, b.floats, same_number);
}

bool same_value(const GgufValue& a, const GgufValue& b) {
  const auto* const array = std::get_if<std::shared_ptr<GgufArray>>(&a.value);
  const auto* const other = std::get_if<std::shared_ptr<GgufArray>>(&b.value);
  if (array != nullptr && other != nullptr) return same_array(**array, **other);
  const auto* const number = std::get_if<double>(&a.value);
  const auto* const other_number = std::get_if<double>(&b.value);
  if (number != nullptr && other_number != nullptr) return same_number(*number, *other_number);
  return a.value == b.value;
}

/// Checks what a part says of the whole against what the first one says.
void check_part(const GgufPart& part, const GgufPart& first, int64_t number, int64_t count) {
  const int64_t stated = required(part.gguf, kCount, part.where);
  if (stated != count) {
    bad_input("{} is one of {} parts, but {} is one of {}; they belong to different models", part.where,
              stated, first.where, count);
  }
  const int64_t place = required(part.gguf, kNumber, part.where);
  if (place != number) {
    bad_input("{} is part {} by its metadata, but part {} by its name; give every part its own name again",
              part.where,
              place < 0 || place >= count ? fmt::format("{} (from 0)", place) : fmt::to_string(place + 1),
              number + 1);
  }
  if (&part == &first) return;
  for (const auto& [key, value] : part.gguf.metadata) {
    if (key == kNumber || key == kCount || key == "general.alignment") continue;
    const auto found = first.gguf.metadata.find(key);
    // Some tools repeat what the first part says, which is taken from there.
    if (found != first.gguf.metadata.end() && same_value(found->second, value)) continue;
    bad_input("{} differs from {} in the metadata {}; they are parts of different models", part.where,
              first.where, printable(key));
  }
}

}  // namespace

std::string GgufPartName::text() const {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, number, count);
}

std::optional<GgufPartName> parse_gguf_part_name(const std::string& file_name) {
  constexpr std::string_view kMiddle = "-of-";
  constexpr std::string_view kEnd = ".gguf";
  const size_t tail = 1 + kDigits + kMiddle.size() + kDigits + kEnd.size();
  if (file_name.size() < tail) return std::nullopt;
  const size_t stem = file_name.size() - tail;
  const std::string_view rest = std::string_view(file_name).substr(stem);
  if (rest[0] != '-' || rest.substr(1 + kDigits, kMiddle.size()) != kMiddle || !rest.ends_with(kEnd)) {
    return std::nullopt;
  }
  const std::optional<int64_t> number = parse_digits(rest.substr(1, kDigits));
  const std::optional<int64_t> count = parse_digits(rest.substr(1 + kDigits + kMiddle.size(), kDigits));
  if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
  return GgufPartName{.stem = file_name.substr(0, stem), .number = *number, .count = *count};
}

int64_t gguf_part_count(const GgufFile& gguf, const std::string& where) {
  const int64_t count = gguf_integer(gguf, kCount).value_or(1);
  if (count < 0 || count > kMostParts) {
    bad_input("{}: {} is {}; a model can have 1 to {} parts", where, kCount, count, kMostParts);
  }
  return std::max<int64_t>(count, 1);  // tools write 0 for a model that they did not split
}

GgufFile join_gguf_parts(std::vector<GgufPart> parts) {
  const GgufPart& first = parts.front();
  const auto count = std::ssize(parts);
  for (int64_t i = 0; i < count; ++i) check_part(parts[static_cast<size_t>(i)], first, i, count);
  const int64_t expected = required(first.gguf, kTensors, first.where);
  GgufFile joined = first.gguf;
  for (size_t i = 1; i < parts.size(); ++i) {
    GgufPart& part = parts[i];
    joined.files.insert(joined.files.end(), part.gguf.files.begin(), part.gguf.files.end());
    for (auto& [name, tensor] : part.gguf.tensors) {
      if (!joined.tensors.emplace(name, std::move(tensor)).second) {
        bad_input("{}: tensor {} is in a part before it, too; these are no parts of one model", part.where,
                  printable(name));
      }
    }
  }
  if (std::ssize(joined.tensors) != expected) {
    bad_input("{}: the {} parts hold {} tensors, but {} says {}; some part is of another model", first.where,
              count, joined.tensors.size(), kTensors, expected);
  }
  return joined;
}

GgufFile open_gguf_parts(const fs::path& path, GgufFile opened) {
  const std::string where = path.string();
  const int64_t count = gguf_part_count(opened, where);
  std::optional<GgufPartName> name = parse_gguf_part_name(path.filename().string());
  if (!name || name->count != count) {
    bad_input(
        "{} is one of {} parts of a model, which are found by their names only: name each "
        "NAME-00001-of-{:05}.gguf with its own number",
        where, count, count);
  }
  const int64_t number = name->number;
  std::vector<GgufPart> parts;
  for (name->number = 1; name->number <= count; ++name->number) {
    if (name->number == number) {
      parts.push_back({std::move(opened), where});
      continue;
    }
    const fs::path other = path.parent_path() / name->text();
    std::error_code ignored;
    if (!fs::exists(other, ignored)) {
      bad_input("{} is one of {} parts of a model, but {} is missing beside it", where, count,
                other.filename().string());
    }
    auto file = std::make_shared<const MemoryMap>(other);
    GgufFile part = parse_gguf(file->bytes(), other.string());
    part.files.push_back(std::move(file));
    parts.push_back({std::move(part), other.string()});
  }
  return join_gguf_parts(std::move(parts));
}

}  // namespace verbatim
