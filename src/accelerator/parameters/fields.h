#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::accelerator {

/// The text of a file. Throws Error(kBadInput), naming the file, when it cannot be read or holds more than
/// 64 MiB.
std::string read_file(const std::filesystem::path& path);

/// The values of a file of parameters in TOML. Each value is asked for by its place ("array.tiles") and has a
/// range; a value that nobody asked for is refused by finish(), so that a slip of the pen changes no result
/// unnoticed. Throws Error(kBadInput), naming the file and the place, for whatever is wrong.
class Fields {
 public:
  Fields(std::string_view toml, std::string where);
  ~Fields();
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  /// Whether there is a value, which need not be there.
  bool has(std::string_view place);
  int64_t whole(std::string_view place, int64_t least, int64_t most);
  double number(std::string_view place, double least, double most);
  bool flag(std::string_view place);
  /// A text without control characters.
  std::string text(std::string_view place);
  /// One of the words, as its index.
  size_t choice(std::string_view place, const std::vector<std::string_view>& words);
  /// A list of pairs of numbers.
  std::vector<std::pair<double, double>> pairs(std::string_view place, double least, double most);
  /// Refuses values that were not asked for.
  void finish() const;
  const std::string& where() const { return where_; }

 private:
  struct Table;
  std::unique_ptr<Table> table_;
  std::string where_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace verbatim::accelerator
