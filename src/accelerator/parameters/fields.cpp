#include "accelerator/parameters/fields.h"

#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "accelerator/fail.h"

namespace verbatim::accelerator {

namespace {

constexpr std::uintmax_t kLongestFile = std::uintmax_t{64} << 20;
/// Tables nest as deep as dots in a key say, and are freed recursively.
constexpr size_t kLongestToml = size_t{16} << 10;

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, 200)) line += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return line;
}

/// Whether a text has characters that move a terminal's cursor or worse: those below a space, and of the C1
/// set.
bool has_control_characters(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (byte < 0x20 || byte == 0x7f || (byte == 0xc2 && next < 0xa0)) return true;
  }
  return false;
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) bad_input("{} does not exist", path.string());
  if (std::filesystem::is_directory(path, error)) bad_input("{} is a folder, not a file", path.string());
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char buffer[1 << 16];
  while (file.read(buffer, sizeof buffer) || file.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(file.gcount()));
    if (text.size() > kLongestFile) bad_input("{} is larger than 64 MiB", path.string());
  }
  if (!file.eof()) bad_input("cannot read {}", path.string());
  return text;
}

struct Fields::Table {
  toml::table root;

  const toml::node* find(std::string_view place) const {
    const size_t dot = place.find('.');
    if (dot == std::string_view::npos) return root.get(place);
    const toml::node* const table = root.get(place.substr(0, dot));
    return table != nullptr && table->is_table() ? table->as_table()->get(place.substr(dot + 1)) : nullptr;
  }
};

Fields::Fields(std::string_view toml, std::string where)
    : table_(std::make_unique<Table>()), where_(std::move(where)) {
  if (toml.size() > kLongestToml) bad_input("{}: more than 16 KiB are no file of parameters", where_);
  try {
    table_->root = toml::parse(toml, where_);
  } catch (const toml::parse_error& error) {
    bad_input("{}: line {}: {}", where_, error.source().begin.line, one_line(error.description()));
  }
}

Fields::~Fields() = default;

bool Fields::has(std::string_view place) {
  asked_.emplace(place);
  return table_->find(place) != nullptr;
}

double Fields::number(std::string_view place, double least, double most) {
  asked_.emplace(place);
  const toml::node* const node = table_->find(place);
  if (node == nullptr) bad_input("{}: {} is missing", where_, place);
  const auto value = node->value<double>();
  if (!value || node->is_boolean()) bad_input("{}: {} must be a number", where_, place);
  if (!(*value >= least && *value <= most)) {
    bad_input("{}: {} must be from {} to {}, not {}", where_, place, least, most, *value);
  }
  return *value;
}

int64_t Fields::whole(std::string_view place, int64_t least, int64_t most) {
  asked_.emplace(place);
  const toml::node* const node = table_->find(place);
  if (node == nullptr) bad_input("{}: {} is missing", where_, place);
  if (!node->is_integer()) bad_input("{}: {} must be a whole number", where_, place);
  const int64_t value = node->as_integer()->get();
  if (value < least || value > most) {
    bad_input("{}: {} must be from {} to {}, not {}", where_, place, least, most, value);
  }
  return value;
}

bool Fields::flag(std::string_view place) {
  asked_.emplace(place);
  const toml::node* const node = table_->find(place);
  if (node == nullptr) bad_input("{}: {} is missing", where_, place);
  if (!node->is_boolean()) bad_input("{}: {} must be true or false", where_, place);
  return node->as_boolean()->get();
}

std::string Fields::text(std::string_view place) {
  asked_.emplace(place);
  const toml::node* const node = table_->find(place);
  if (node == nullptr) bad_input("{}: {} is missing", where_, place);
  if (!node->is_string()) bad_input("{}: {} must be a string", where_, place);
  std::string text = node->as_string()->get();
  if (has_control_characters(text)) bad_input("{}: {} must be without control characters", where_, place);
  return text;
}

size_t Fields::choice(std::string_view place, const std::vector<std::string_view>& words) {
  const std::string word = text(place);
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) {
    bad_input("{}: {} must be one of {}, not \"{}\"", where_, place, fmt::join(words, ", "), one_line(word));
  }
  return static_cast<size_t>(found - words.begin());
}

std::vector<std::pair<double, double>> Fields::pairs(std::string_view place, double least, double most) {
  asked_.emplace(place);
  const toml::node* const node = table_->find(place);
  std::vector<std::pair<double, double>> found;
  const auto refuse = [&] {
    bad_input("{}: {} must be a list of pairs of numbers from {} to {}", where_, place, least, most);
  };
  if (node == nullptr || !node->is_array()) refuse();
  for (const toml::node& one : *node->as_array()) {
    const toml::array* const pair = one.as_array();
    if (pair == nullptr || pair->size() != 2) refuse();
    const auto first = pair->get(0)->value<double>();
    const auto second = pair->get(1)->value<double>();
    if (!first || !second || !(*first >= least && *first <= most && *second >= least && *second <= most)) {
      refuse();
    }
    found.emplace_back(*first, *second);
  }
  return found;
}

void Fields::finish() const {
  for (const auto& [key, value] : table_->root) {
    if (!value.is_table()) {
      if (asked_.count(key.str()) == 0) bad_input("{}: unknown key {}", where_, one_line(key.str()));
      continue;
    }
    // One without any keys is known if something in it was asked for.
    const std::string within = std::string(key.str()) + ".";
    const auto place_within = asked_.lower_bound(within);
    const bool known = place_within != asked_.end() && place_within->starts_with(within);
    if (!known && asked_.count(key.str()) == 0) bad_input("{}: unknown key {}", where_, one_line(key.str()));
    for (const auto& [inner, ignored] : *value.as_table()) {
      const std::string place = std::string(key.str()) + "." + std::string(inner.str());
      if (asked_.count(place) == 0) bad_input("{}: unknown key {}", where_, one_line(place));
    }
  }
}

}  // namespace verbatim::accelerator
