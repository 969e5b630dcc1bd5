#include "text/vocabulary.h"

#include "base/error.h"

namespace verbatim {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

void Vocabulary::set(Token id, const std::string& text, PieceKind kind, std::string bytes) {
  if (static_cast<size_t>(id) >= pieces.size()) pieces.resize(static_cast<size_t>(id) + 1);
  pieces[id] = {.text = text, .bytes = std::move(bytes), .kind = kind, .added = false};
  ids[text] = id;
}

std::optional<Token> Vocabulary::find(std::string_view text) const {
  const auto found = ids.find(text);
  if (found == ids.end()) return std::nullopt;
  return found->second;
}

std::optional<unsigned char> byte_token_value(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return std::nullopt;
  const int high = hex_digit(text[3]);
  const int low = hex_digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<unsigned char>(high * 16 + low);
}

std::string byte_token_text(unsigned char byte) {
  return fmt::format("<0x{:02X}>", byte);
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  size_t begin = 0;
  for (size_t at; (at = text.find(from, begin)) != std::string_view::npos; begin = at + from.size()) {
    result.append(text, begin, at - begin);
    result.append(to);
  }
  result.append(text, begin);
  return result;
}

void require_plausible_id(int64_t id, size_t entries, const std::string& where) {
  const auto limit = static_cast<int64_t>(2 * entries + 1024);
  if (id < 0 || id >= limit) {
    bad_input("{}: token id {} is out of range for a vocabulary of {} tokens", where, id, entries);
  }
}

}  // namespace verbatim
