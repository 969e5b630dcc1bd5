#include "base/processors.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

namespace verbatim {

namespace {

const std::string kProcessorFolder = "/sys/devices/system/cpu/cpu";
const std::string kNodeFolder = "/sys/devices/system/node/";

/// No machine has a processor with so large a number.
constexpr int64_t kMostProcessors = int64_t{1} << 20;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin);
}

/// Takes the text before a separator, or all of it, from the front of a text.
std::string_view take_until(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

/// The number that a whole text is, if it is not negative.
std::optional<int64_t> whole_number(std::string_view text) {
  text = trimmed(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// The numbers of a list such as "0-3,8". Empty if the list makes no sense.
std::vector<int> listed_numbers(std::string_view text) {
  std::vector<int> numbers;
  text = trimmed(text);
  while (!text.empty()) {
    std::string_view range = take_until(text, ',');
    const std::optional<int64_t> first = whole_number(take_until(range, '-'));
    const std::optional<int64_t> last = range.empty() ? first : whole_number(range);
    if (!first || !last || *last < *first || *last >= kMostProcessors) return {};
    if (std::ssize(numbers) + *last - *first >= kMostProcessors) return {};
    for (int64_t number = *first; number <= *last; ++number) numbers.push_back(static_cast<int>(number));
  }
  return numbers;
}

bool is_among(const std::vector<int>& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

/// What tells the cores of a machine apart: the lowest number of their processors, or socket and number.
using CoreKey = std::pair<int64_t, int64_t>;

CoreKey core_of(int processor, const FileReader& read) {
  const std::string folder = kProcessorFolder + std::to_string(processor) + "/topology/";
  const std::vector<int> siblings = listed_numbers(read(folder + "thread_siblings_list"));
  if (is_among(siblings, processor)) return {-1, *std::min_element(siblings.begin(), siblings.end())};
  const std::optional<int64_t> socket = whole_number(read(folder + "physical_package_id"));
  const std::optional<int64_t> core = whole_number(read(folder + "core_id"));
  if (socket && core) return {*socket, *core};
  return {-1, processor};
}

/// The speeds of processors, each compared with the fastest of them, by the first source that knows all of
/// them: the capacity that the scheduler reckons with, or the highest frequency. Empty if no source does.
std::vector<double> speeds_of(std::span<const int> processors, const FileReader& read) {
  for (const char* const source : {"/cpu_capacity", "/cpufreq/cpuinfo_max_freq"}) {
    std::vector<double> speeds;
    for (const int processor : processors) {
      const std::optional<int64_t> speed =
          whole_number(read(kProcessorFolder + std::to_string(processor) + source));
      if (!speed || *speed == 0) break;
      speeds.push_back(static_cast<double>(*speed));
    }
    if (speeds.size() != processors.size() || speeds.empty()) continue;
    const double fastest = *std::max_element(speeds.begin(), speeds.end());
    for (double& speed : speeds) speed /= fastest;
    return speeds;
  }
  return {};
}

int numa_nodes_of(std::span<const int> processors, const FileReader& read) {
  int nodes = 0;
  for (const int node : listed_numbers(read(kNodeFolder + "online"))) {
    const std::vector<int> members = listed_numbers(read(fmt::format("{}node{}/cpulist", kNodeFolder, node)));
    nodes += std::any_of(processors.begin(), processors.end(), [&](int p) { return is_among(members, p); });
  }
  return std::max(nodes, 1);
}

void lower_limit(std::optional<double>& limit, std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota == 0 || *period == 0) return;
  const double processors = static_cast<double>(*quota) / static_cast<double>(*period);
  limit = limit ? std::min(*limit, processors) : processors;
}

/// Lowers `limit` to the quotas of a group and those it lies in. In a container the path may begin above what
/// is mounted: what is not there is passed over, up to the mount itself.
void lower_along(std::optional<double>& limit, const std::string& mount, std::string_view group,
                 const FileReader& read) {
  while (true) {
    while (group.ends_with('/')) group.remove_suffix(1);
    const std::string folder = mount + std::string(group);
    const std::string both = read(folder + "/cpu.max");  // version 2: "150000 100000", or "max 100000"
    std::string_view period = trimmed(both);
    const std::string_view quota = take_until(period, ' ');
    lower_limit(limit, whole_number(quota), whole_number(period));
    lower_limit(limit, whole_number(read(folder + "/cpu.cfs_quota_us")),  // version 1: -1 is no limit
                whole_number(read(folder + "/cpu.cfs_period_us")));
    if (group.empty()) return;
    group = group.substr(0, std::min(group.rfind('/'), group.size()));
  }
}

std::optional<double> quota_of(const FileReader& read) {
  std::optional<double> limit;
  const std::string text = read("/proc/self/cgroup");
  std::string_view lines = text;
  // Lines are number:controllers:path; version 2 has one line, without controllers.
  while (!lines.empty()) {
    std::string_view group = take_until(lines, '\n');
    take_until(group, ':');
    const std::string controllers = fmt::format(",{},", take_until(group, ':'));
    if (!group.starts_with('/')) continue;
    if (controllers == ",,") {
      lower_along(limit, "/sys/fs/cgroup", group, read);
      lower_along(limit, "/sys/fs/cgroup/unified", group, read);
    } else if (controllers.find(",cpu,") != std::string::npos) {
      for (const char* const mount : {"cpu", "cpu,cpuacct", "cpuacct,cpu"}) {
        lower_along(limit, fmt::format("/sys/fs/cgroup/{}", mount), group, read);
      }
    }
  }
  return limit;
}

std::string read_whole_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The numbers of the processors in this thread's affinity mask.
std::vector<int> allowed_processors() {
  std::vector<int> allowed;
  for (size_t room = CPU_SETSIZE; room <= kMostProcessors && allowed.empty(); room *= 4) {
    cpu_set_t* const set = CPU_ALLOC(room);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(room);
    // It fails if the machine could have more processors than there is room for.
    if (sched_getaffinity(0, bytes, set) == 0) {
      for (size_t processor = 0; processor < room; ++processor) {
        if (CPU_ISSET_S(processor, bytes, set)) allowed.push_back(static_cast<int>(processor));
      }
    }
    CPU_FREE(set);
  }
  const int count = static_cast<int>(std::thread::hardware_concurrency());
  for (int processor = 0; allowed.empty() && processor < count; ++processor) allowed.push_back(processor);
  return allowed;
}

}  // namespace

Processors describe_processors(std::span<const int> allowed, const FileReader& read) {
  Processors found;
  found.allowed = std::max(static_cast<int>(allowed.size()), 1);
  found.quota = quota_of(read);
  found.nodes = numa_nodes_of(allowed, read);
  const std::vector<double> speeds = speeds_of(allowed, read);
  const std::vector<int> efficient = listed_numbers(read("/sys/devices/cpu_atom/cpus"));
  const bool mixed =
      std::any_of(allowed.begin(), allowed.end(), [&](int p) { return !is_among(efficient, p); });
  constexpr double kSlow = 0.8;
  constexpr double kUseless = 0.5;
  std::map<CoreKey, double> cores;
  for (size_t i = 0; i < allowed.size(); ++i) {
    double speed = speeds.empty() ? 1.0 : speeds[i];
    // The kernel may name the slow cores without saying how fast they are.
    if (mixed && speeds.empty() && is_among(efficient, allowed[i])) speed = kUseless;
    double& fastest = cores[core_of(allowed[i], read)];
    fastest = std::max(fastest, speed);
  }
  found.cores = std::max(static_cast<int>(cores.size()), 1);
  for (const auto& [key, speed] : cores) {
    found.slow_cores += speed < kSlow;
    found.useless_cores += speed < kUseless;
  }
  return found;
}

Processors describe_processors() {
  return describe_processors(allowed_processors(), read_whole_text);
}

ThreadChoice choose_threads(const Processors& processors) {
  const auto counted = [](int count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  ThreadChoice choice;
  choice.threads = std::max(processors.cores - processors.useless_cores, 1);
  choice.reason = counted(processors.cores, "physical core");
  if (processors.allowed > processors.cores) {
    choice.reason += " with " + counted(processors.allowed, "hardware thread");
  }
  if (processors.nodes > 1) choice.reason += " on " + counted(processors.nodes, "NUMA node");
  if (processors.slow_cores > 0) choice.reason += fmt::format(", {} of them slower", processors.slow_cores);
  if (processors.useless_cores > 0) {
    choice.reason += fmt::format(", {} less than half as fast and left out", processors.useless_cores);
  }
  if (!processors.quota) return choice;
  const double rounded = std::max(std::round(*processors.quota), 1.0);
  if (rounded >= choice.threads) return choice;
  choice.threads = static_cast<int>(rounded);
  choice.reason += fmt::format(", but time for {:.3g} by the quota of the control group", *processors.quota);
  return choice;
}

int hardware_threads() {
  return choose_threads(describe_processors()).threads;
}

}  // namespace verbatim
