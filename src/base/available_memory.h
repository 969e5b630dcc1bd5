#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace verbatim {

/// The bytes of memory that this process can still take: the machine's available memory, with the cached
/// files that it would drop, or less if a control group limits the process. Nothing if the system does not
/// say.
std::optional<int64_t> available_memory();

// The two sources of available_memory():

/// The value of MemAvailable, in bytes, in the text of /proc/meminfo.
std::optional<int64_t> meminfo_available(std::string_view meminfo);

/// The bytes that the memory limits of a process's control groups leave, the smallest of all groups. `groups`
/// is the text of /proc/self/cgroup, `mount` the folder where both versions of control groups are mounted
/// (/sys/fs/cgroup). A group's cached files count as free. Nothing if there is no limit.
std::optional<int64_t> control_group_room(std::string_view groups, const std::filesystem::path& mount);

}  // namespace verbatim
