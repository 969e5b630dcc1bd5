#include "kv/make_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"
#include "kernels/kernel_table.h"
#include "kv/dense.h"
#include "kv/f32.h"
#include "kv/hierarchical.h"
#include "kv/int8.h"

namespace verbatim {

namespace {

using Kind = CacheOptions::Kind;

constexpr std::pair<Kind, std::string_view> kNames[] = {{Kind::kBf16, "bf16"},
                                                        {Kind::kF16, "f16"},
                                                        {Kind::kF32, "f32"},
                                                        {Kind::kInt8, "int8"},
                                                        {Kind::kHierarchical, "hierarchical"}};

constexpr int32_t kLeastBuffer = 2 * kAttentionChunk;
constexpr int32_t kLargestBuffer = 1 << 16;
/// The largest head dimension of caches that store codes: sums of products with codes then stay within 31
/// bits (CodeProduct).
constexpr int64_t kLargestCodedHead = kMostScaledNumbers;

void read_option(CacheOptions& options, std::string_view text, const std::string& where) {
  const size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  int32_t* const number = key == "group"    ? &options.group
                          : key == "buffer" ? &options.buffer
                          : key == "bits"   ? &options.bits
                                            : nullptr;
  if (number != nullptr) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *number);
    if (error == std::errc() && end == value.data() + value.size()) return;
  } else if (key == "keys" && (value == "channel" || value == "position")) {
    options.keys_by_position = value == "position";
    return;
  } else if (key == "values" && (value == "channel" || value == "position")) {
    options.values_by_channel = value == "channel";
    return;
  }
  bad_input(
      "{}: \"{}\" is no option of the hierarchical cache; these are group=, buffer=, bits=, and keys= and "
      "values= with channel or position",
      where, text);
}

}  // namespace

std::string cache_name(const CacheOptions& options) {
  std::string text;
  for (const auto& [kind, name] : kNames) {
    if (kind == options.kind) text = name;
  }
  if (options.kind != Kind::kHierarchical) return text;
  const CacheOptions usual{.kind = Kind::kHierarchical};
  char separator = ':';
  const auto add = [&](bool differs, const std::string& what) {
    if (!differs) return;
    text += separator + what;
    separator = ',';
  };
  add(options.group != usual.group, fmt::format("group={}", options.group));
  add(options.buffer != usual.buffer, fmt::format("buffer={}", options.buffer));
  add(options.bits != usual.bits, fmt::format("bits={}", options.bits));
  add(options.keys_by_position, "keys=position");
  add(options.values_by_channel, "values=channel");
  return text;
}

CacheOptions parse_cache(std::string_view text, const std::string& where) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto known = std::find_if(std::begin(kNames), std::end(kNames),
                                  [&](const auto& entry) { return entry.second == name; });
  if (known == std::end(kNames)) {
    bad_input("{}: unknown cache \"{}\"; known are bf16, f16, f32, int8 and hierarchical", where, name);
  }
  CacheOptions options{.kind = known->first};
  if (colon == std::string_view::npos) return options;
  if (options.kind != Kind::kHierarchical) bad_input("{}: the cache {} has no options", where, name);
  std::string_view rest = text.substr(colon + 1);
  std::set<std::string_view> keys;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view key = rest.substr(0, std::min(rest.find('='), comma));
    if (!keys.insert(key).second) bad_input("{}: the option {} of the cache is there twice", where, key);
    read_option(options, rest.substr(0, comma), where);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  check_cache(options, where);
  return options;
}

void check_cache(const CacheOptions& options, const std::string& where) {
  if (options.group != 32 && options.group != 64 && options.group != 128) {
    bad_input("{}: the cache's group must be 32, 64 or 128, not {}", where, options.group);
  }
  if (options.buffer < kLeastBuffer || options.buffer > kLargestBuffer ||
      options.buffer % kLeastBuffer != 0) {
    bad_input("{}: the cache's buffer must be a multiple of {} up to {}, not {}", where, kLeastBuffer,
              kLargestBuffer, options.buffer);
  }
  if (options.bits != 4 && options.bits != 8) {
    bad_input("{}: the cache's bits must be 4 or 8, not {}", where, options.bits);
  }
}

std::unique_ptr<KvCache> make_cache(const CacheOptions& options, const CacheShape& shape, int64_t capacity) {
  check_cache(options, "the cache");
  const bool coded = options.kind == Kind::kInt8 || options.kind == Kind::kHierarchical;
  if (coded && shape.head_dim > kLargestCodedHead) {
    bad_input("the cache {} stores heads of up to {} dimensions, this model's have {}: choose bf16",
              cache_name(options), kLargestCodedHead, shape.head_dim);
  }
  switch (options.kind) {
    case Kind::kBf16:
      return std::make_unique<DenseCache>(shape, capacity);
    case Kind::kF16:
      return std::make_unique<DenseCache>(shape, capacity, Element::kF16);
    case Kind::kF32:
      return std::make_unique<F32Cache>(shape, capacity);
    case Kind::kInt8:
      return std::make_unique<Int8Cache>(shape, capacity);
    case Kind::kHierarchical:
      return std::make_unique<HierarchicalCache>(shape, capacity, options);
  }
  return nullptr;
}

int64_t cache_bytes(const CacheOptions& options, const CacheShape& shape, int64_t positions) {
  return make_cache(options, shape, positions)->bytes(positions);
}

}  // namespace verbatim
