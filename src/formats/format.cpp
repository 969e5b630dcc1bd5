#include "formats/format.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "verbatim/formats.h"

namespace verbatim {

namespace {

struct FormatEntry {
  std::string_view name;
  bool exact;
  std::vector<Reading> readings;
};

const std::array<FormatEntry, kFormatCount>& formats() {
  static const std::array<FormatEntry, kFormatCount> table = {{
      {"bf16", true, {Reading::kBf16}},
      {"f16", true, {Reading::kF16}},
      {"f32", true, {Reading::kF32}},
      {"int8", false, {Reading::kInt8W8A16, Reading::kInt8W8A8}},
      {"int4", false, {Reading::kInt4W4A16, Reading::kInt4W4A8, Reading::kInt4W4A4}},
      {"int4-asymmetric", false, {Reading::kInt4AsymmetricW4A16, Reading::kInt4AsymmetricW4A8}},
      {"mxfp4", false, {Reading::kMxfp4W4A16, Reading::kMxfp4W4A8}},
      {"bsfp", true, {Reading::kBsfpFull, Reading::kBsfpDraft, Reading::kBsfpDraftA16}},
      {"mxbf16", true, {Reading::kMxbf16Full, Reading::kMxbf16Draft}},
      {"squeeze3", false, {Reading::kSqueeze3}},
      {"squeeze4", false, {Reading::kSqueeze4}},
      {"q8_0", true, {Reading::kQ8_0, Reading::kQ8_0Draft}},
      {"k-quants", true, {Reading::kKQuantsA16, Reading::kKQuantsA8}},
  }};
  return table;
}

struct ReadingEntry {
  Reading reading;
  std::string_view name;
};

constexpr ReadingEntry kReadings[] = {
    {Reading::kFull, "full"},
    {Reading::kDraft, "draft"},
    {Reading::kBf16, "bf16"},
    {Reading::kF16, "f16"},
    {Reading::kF32, "f32"},
    {Reading::kInt8W8A16, "int8-w8a16"},
    {Reading::kInt8W8A8, "int8-w8a8"},
    {Reading::kInt4W4A16, "int4-w4a16"},
    {Reading::kInt4W4A8, "int4-w4a8"},
    {Reading::kInt4W4A4, "int4-w4a4"},
    {Reading::kInt4AsymmetricW4A16, "int4-asymmetric-w4a16"},
    {Reading::kInt4AsymmetricW4A8, "int4-asymmetric-w4a8"},
    {Reading::kMxfp4W4A16, "mxfp4-w4a16"},
    {Reading::kMxfp4W4A8, "mxfp4-w4a8"},
    {Reading::kBsfpFull, "bsfp-full"},
    {Reading::kBsfpDraft, "bsfp-draft"},
    {Reading::kMxbf16Full, "mxbf16-full"},
    {Reading::kMxbf16Draft, "mxbf16-draft"},
    {Reading::kSqueeze3, "squeeze3"},
    {Reading::kSqueeze4, "squeeze4"},
    {Reading::kQ8_0, "q8_0"},
    {Reading::kKQuantsA16, "k-quants-a16"},
    {Reading::kKQuantsA8, "k-quants-a8"},
    {Reading::kQ8_0Draft, "q8_0-draft"},
    {Reading::kBsfpDraftA16, "bsfp-draft-a16"},
};

}  // namespace

std::string_view format_name(Format format) {
  return formats()[static_cast<size_t>(format)].name;
}

const std::vector<Format>& all_formats() {
  static const std::vector<Format> all = [] {
    std::vector<Format> list;
    for (int i = 0; i < kFormatCount; ++i) list.push_back(static_cast<Format>(i));
    return list;
  }();
  return all;
}

Format parse_format(std::string_view name, std::string_view where) {
  std::string known;
  for (const Format format : all_formats()) {
    if (format_name(format) == name) return format;
    known += (known.empty() ? "" : ", ") + std::string(format_name(format));
  }
  bad_input("{}: unknown format \"{}\"; known are {}", where, name, known);
}

std::string_view reading_name(Reading reading) {
  return kReadings[static_cast<size_t>(reading)].name;
}

Reading parse_reading(std::string_view name, std::string_view where) {
  std::string known;
  for (const ReadingEntry& entry : kReadings) {
    if (entry.name == name) return entry.reading;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  bad_input("{}: unknown reading \"{}\"; known are {}", where, name, known);
}

Format reading_format(Reading reading) {
  for (const Format format : all_formats()) {
    const std::vector<Reading>& of_format = readings(format);
    if (std::find(of_format.begin(), of_format.end(), reading) != of_format.end()) return format;
  }
  fail(ErrorKind::kUsage, "the reading {} is not of one format", reading_name(reading));
}

std::string_view store_name(Reading reading) {
  const bool any = reading == Reading::kFull || reading == Reading::kDraft;
  return any ? reading_name(reading) : format_name(reading_format(reading));
}

const std::vector<Reading>& readings(Format format) {
  return formats()[static_cast<size_t>(format)].readings;
}

bool is_exact(Format format) {
  return formats()[static_cast<size_t>(format)].exact;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format format : all_formats()) names.emplace_back(format_name(format));
  return names;
}

void require_format(std::string_view name, std::string_view where) {
  parse_format(name, where);
}

std::string format_of_reading(std::string_view reading, std::string_view where) {
  return std::string(store_name(parse_reading(reading, where)));
}

}  // namespace verbatim
