#include "drafting/kept_costs.h"

#include <fmt/format.h>
#include <unistd.h>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/crc64.h"
#include "base/error.h"
#include "base/input_file.h"

namespace verbatim {

namespace {

/// The version of the files of costs, raised when their contents change or the kernels take other times.
constexpr int kCostsVersion = 13;

/// The most bytes of a file of costs that are read: many times what keep_costs() writes.
constexpr size_t kLongestFile = size_t{1} << 16;

std::filesystem::path file_of(const std::filesystem::path& folder, const std::string& key) {
  const auto bytes = std::as_bytes(std::span(key.data(), key.size()));
  return folder / fmt::format("pass-costs-{:016x}.json", crc64(bytes));
}

}  // namespace

std::optional<std::filesystem::path> cache_folder() {
  if (const char* const own = std::getenv("VERBATIM_CACHE_DIR"); own != nullptr) {
    if (*own == '\0') return std::nullopt;
    return own;
  }
  if (const char* const shared = std::getenv("XDG_CACHE_HOME"); shared != nullptr && *shared == '/') {
    return std::filesystem::path(shared) / "verbatim";
  }
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::filesystem::path(home) / ".cache" / "verbatim";
  }
  return std::nullopt;
}

std::optional<std::vector<double>> find_costs(const std::filesystem::path& folder, const std::string& key,
                                              size_t count) {
  std::string text;
  try {
    text = read_input(file_of(folder, key), kLongestFile);
  } catch (const Error&) {
    return std::nullopt;  // what cannot be read is measured anew
  }
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object() || object.value("version", nlohmann::json()) != kCostsVersion ||
      object.value("key", nlohmann::json()) != key) {
    return std::nullopt;
  }
  const auto found = object.find("seconds");
  if (found == object.end() || !found->is_array() || found->size() != count) return std::nullopt;
  std::vector<double> seconds;
  for (const nlohmann::json& value : *found) {
    if (!value.is_number()) return std::nullopt;
    seconds.push_back(value.get<double>());
    if (!(seconds.back() > 0.0 && seconds.back() < 1e6)) return std::nullopt;
  }
  return seconds;
}

bool keep_costs(const std::filesystem::path& folder, const std::string& key, std::span<const int64_t> rows,
                std::span<const double> seconds) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::filesystem::path path = file_of(folder, key);
  std::filesystem::path unfinished = path;
  unfinished += fmt::format(".{}", getpid());
  const nlohmann::ordered_json object = {{"version", kCostsVersion},
                                         {"key", key},
                                         {"rows", std::vector<int64_t>(rows.begin(), rows.end())},
                                         {"seconds", std::vector<double>(seconds.begin(), seconds.end())}};
  std::ofstream file(unfinished, std::ios::binary);
  file << object.dump(2) << "\n";
  file.close();
  if (file) std::filesystem::rename(unfinished, path, error);
  const bool kept = file && !error;
  if (!kept) std::filesystem::remove(unfinished, error);
  return kept;
}

}  // namespace verbatim
