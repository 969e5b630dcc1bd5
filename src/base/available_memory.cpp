#include "base/available_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>

namespace verbatim {

namespace fs = std::filesystem;

namespace {

/// Version 1 writes the absence of a limit as a number about so large.
constexpr int64_t kNoLimit = int64_t{1} << 60;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<int64_t> number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  return value;
}

std::optional<int64_t> number_in(const fs::path& path) {
  return number_at(text_of(path));
}

/// Calls visit(line) for every line.
template <typename Visit>
void each_line(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// The number after the first of these words that begins a line.
std::optional<int64_t> value_of(std::string_view text, std::string_view word) {
  std::optional<int64_t> value;
  each_line(text, [&](std::string_view line) {
    if (!value && line.starts_with(word)) value = number_at(line.substr(word.size()));
  });
  return value;
}

/// The names of a version's files.
struct Files {
  const char* limit;
  const char* usage;
  const char* inactive;
  const char* active;
};
constexpr Files kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ",
                             "total_active_file "};
constexpr Files kVersion2 = {"memory.max", "memory.current", "inactive_file ", "active_file "};

std::optional<int64_t> room_in(const fs::path& folder, const Files& files) {
  const std::optional<int64_t> limit = number_in(folder / files.limit);  // none: "max"
  const std::optional<int64_t> usage = number_in(folder / files.usage);
  if (!limit || !usage || *limit >= kNoLimit) return std::nullopt;
  const std::string statistics = text_of(folder / "memory.stat");
  const int64_t cached =
      value_of(statistics, files.inactive).value_or(0) + value_of(statistics, files.active).value_or(0);
  return std::max<int64_t>(*limit - *usage + std::min(cached, *usage), 0);
}

std::optional<int64_t> least(std::optional<int64_t> a, std::optional<int64_t> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

/// The least room of a group and those it lies in. In a container the path may begin above what is mounted:
/// what is not there is passed over, up to the mount itself.
std::optional<int64_t> room_along(const fs::path& mount, std::string_view group, const Files& files) {
  fs::path path = mount / fs::path(group).relative_path();
  std::optional<int64_t> room = room_in(mount, files);
  for (; path != mount && path.has_relative_path(); path = path.parent_path()) {
    room = least(room, room_in(path, files));
  }
  return room;
}

}  // namespace

std::optional<int64_t> meminfo_available(std::string_view meminfo) {
  const std::optional<int64_t> kilobytes = value_of(meminfo, "MemAvailable:");
  if (!kilobytes || *kilobytes >= kNoLimit / 1024) return std::nullopt;
  return *kilobytes * 1024;
}

std::optional<int64_t> control_group_room(std::string_view groups, const fs::path& mount) {
  std::optional<int64_t> room;
  // Lines are number:controllers:path; version 2 has one line, without controllers.
  each_line(groups, [&](std::string_view line) {
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) return;
    std::string controllers = ",";
    controllers.append(line.substr(first + 1, second - first - 1)).append(",");
    const std::string_view path = line.substr(second + 1);
    if (controllers == ",,") {
      room = least(room, room_along(mount, path, kVersion2));
      room = least(room, room_along(mount / "unified", path, kVersion2));
    } else if (controllers.find(",memory,") != std::string::npos) {
      room = least(room, room_along(mount / "memory", path, kVersion1));
    }
  });
  return room;
}

std::optional<int64_t> available_memory() {
  return least(meminfo_available(text_of("/proc/meminfo")),
               control_group_room(text_of("/proc/self/cgroup"), "/sys/fs/cgroup"));
}

}  // namespace verbatim
