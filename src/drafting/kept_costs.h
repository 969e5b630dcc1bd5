#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace verbatim {

// Measured times that are kept in files from run to run.

/// The folder where measurements are kept from run to run: $VERBATIM_CACHE_DIR, else
/// $XDG_CACHE_HOME/verbatim, else ~/.cache/verbatim; none when there is no home or VERBATIM_CACHE_DIR is
/// empty.
std::optional<std::filesystem::path> cache_folder();

/// Finds the times that are kept under a key: seconds, one for each of `count` numbers of rows. Returns
/// nothing if there are none, or if the file is malformed, of another version or of another count.
std::optional<std::vector<double>> find_costs(const std::filesystem::path& folder, const std::string& key,
                                              size_t count);
/// Keeps times under a key in a folder: `seconds[i]` for `rows[i]` rows. Returns false if the folder cannot
/// be written to.
bool keep_costs(const std::filesystem::path& folder, const std::string& key, std::span<const int64_t> rows,
                std::span<const double> seconds);

}  // namespace verbatim
