#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace verbatim {

/// Bytes of memory that this process can still take: what the machine has to give, with what it would drop of
/// its cache of files, or less where a control group limits the process. Nothing where the system does not
/// say.
std::optional<int64_t> available_memory();

// Its parts:

/// MemAvailable of the text of /proc/meminfo, in bytes.
std::optional<int64_t> meminfo_available(std::string_view meminfo);

/// The least that a memory limit of the control groups of a process leaves: `groups` is the text of
/// /proc/self/cgroup, `mount` the folder where both versions of control groups are mounted (/sys/fs/cgroup).
/// A group's cached files count as free. Nothing without a limit.
std::optional<int64_t> control_group_room(std::string_view groups, const std::filesystem::path& mount);

}  // namespace verbatim
