#include "templates/text_operations.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "templates/operations.h"
#include "templates/written.h"

namespace verbatim::jinja {

namespace {

size_t previous_character(std::string_view text, size_t offset) {
  do --offset;
  while (offset > 0 && (static_cast<unsigned char>(text[offset]) & 0xC0u) == 0x80u);
  return offset;
}

void append_character(uint32_t c, bool from_template, TracedText& text) {
  char bytes[4];
  size_t size = 0;
  const auto tail = [&](int shift) { bytes[size++] = static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    bytes[size++] = static_cast<char>(c);
  } else if (c < 0x800) {
    bytes[size++] = static_cast<char>(0xC0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    bytes[size++] = static_cast<char>(0xE0 | c >> 12);
    tail(6);
    tail(0);
  } else {
    bytes[size++] = static_cast<char>(0xF0 | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
  text.append(std::string_view(bytes, size), from_template);
}

/// The words of a text between white space; the first or last takes in the rest after `most` cuts.
void split_words(Machine& machine, const TracedText& text, int64_t most, bool from_right,
                 std::vector<std::pair<size_t, size_t>>& words) {
  const std::string& bytes = text.bytes();
  std::vector<std::pair<size_t, size_t>> all;
  size_t begin = std::string::npos;
  for (size_t i = 0; i < bytes.size(); i += utf8_length(bytes[i])) {
    const bool space = is_white_space(utf8_character(bytes, i));
    if (space && begin != std::string::npos) all.emplace_back(std::exchange(begin, std::string::npos), i);
    if (!space && begin == std::string::npos) begin = i;
  }
  if (begin != std::string::npos) all.emplace_back(begin, bytes.size());
  machine.step(all.size());
  const auto kept = static_cast<size_t>(most);
  if (most >= 0 && all.size() > kept) {
    if (from_right) {
      const size_t merged = all.size() - kept - 1;
      all[merged].first = 0;
      all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(merged));
    } else {
      all[kept].second = bytes.size();
      all.resize(kept + 1);
    }
  }
  words = std::move(all);
}

}  // namespace

bool is_white_space(uint32_t c) {
  return u_isUWhiteSpace(static_cast<UChar32>(c)) != 0 || (c >= 0x1C && c <= 0x1F);
}

TracedText stripped(const TracedText& text, const TracedText* what, bool left, bool right) {
  const std::string& bytes = text.bytes();
  const auto strips = [&](size_t at) {
    if (what == nullptr) return is_white_space(utf8_character(bytes, at));
    const std::string_view character = std::string_view(bytes).substr(at, utf8_length(bytes[at]));
    return find_text(what->bytes(), character) != std::string_view::npos;
  };
  size_t begin = 0;
  size_t end = bytes.size();
  while (left && begin < end && strips(begin)) begin += utf8_length(bytes[begin]);
  while (right && end > begin && strips(previous_character(bytes, end))) end = previous_character(bytes, end);
  return text.slice(begin, end);
}

TracedText replaced(Machine& machine, const TracedText& text, const TracedText& part, const TracedText& by,
                    int64_t most) {
  const std::string& bytes = text.bytes();
  TracedText all;
  size_t done = 0;
  size_t at = 0;
  for (int64_t count = 0; most < 0 || count < most; ++count) {
    const size_t found = find_text(bytes, part.bytes(), at);
    if (found == std::string_view::npos) break;
    machine.scan(found - at + by.size());
    machine.check_length(all.size() + (found - done) + by.size());
    all.append(text, done, found);
    all.append(by);
    done = found + part.size();
    // An empty part is found between all characters.
    at = part.empty() ? found + (found < bytes.size() ? utf8_length(bytes[found]) : 1) : done;
    if (at > bytes.size()) break;
  }
  all.append(text, done, bytes.size());
  return all;
}

List* split(Machine& machine, const TracedText& text, const TracedText* separator, int64_t most,
            bool from_right) {
  std::vector<std::pair<size_t, size_t>> parts;
  machine.scan(text.size());
  if (separator == nullptr) {
    split_words(machine, text, most, from_right, parts);
  } else {
    if (separator->empty()) machine.fail("a text is split at an empty separator");
    size_t begin = 0;
    for (size_t at = 0;
         (at = find_text(text.bytes(), separator->bytes(), begin)) != std::string_view::npos;) {
      if (!from_right && most >= 0 && static_cast<int64_t>(parts.size()) >= most) break;
      machine.step();
      parts.emplace_back(begin, at);
      begin = at + separator->size();
    }
    parts.emplace_back(begin, text.size());
    if (from_right && most >= 0 && static_cast<int64_t>(parts.size()) > most + 1) {
      const auto merged = static_cast<ptrdiff_t>(parts.size()) - most - 1;
      parts[static_cast<size_t>(merged)].first = 0;
      parts.erase(parts.begin(), parts.begin() + merged);
    }
  }
  List* const list = machine.list();
  for (const auto& [begin, end] : parts) machine.append(*list, machine.text(text.slice(begin, end)));
  return list;
}

List* split_lines(Machine& machine, const TracedText& text, bool keep_ends) {
  const std::string& bytes = text.bytes();
  List* const list = machine.list();
  machine.scan(text.size());
  for (size_t begin = 0; begin < bytes.size();) {
    size_t end = bytes.find_first_of("\n\r", begin);
    size_t next = bytes.size();
    if (end == std::string::npos) {
      end = bytes.size();
    } else {
      next = end + (bytes.compare(end, 2, "\r\n") == 0 ? 2 : 1);
    }
    machine.append(*list, machine.text(text.slice(begin, keep_ends ? next : end)));
    begin = next;
  }
  return list;
}

Value joined(Machine& machine, const TracedText& separator, const List& items) {
  TracedText all;
  for (size_t i = 0; i < items.items.size(); ++i) {
    machine.step();
    if (i > 0) all.append(separator);
    all.append(written(machine, items.items[i]));
    machine.check_length(all.size());
  }
  return machine.text(std::move(all));
}

TracedText in_case(Machine& machine, const TracedText& text, LetterCase letter_case) {
  const std::string& bytes = text.bytes();
  machine.step(1 + bytes.size() / 16);
  TracedText all;
  bool begins = true;
  for (size_t i = 0; i < bytes.size(); i += utf8_length(bytes[i])) {
    const auto c = static_cast<UChar32>(utf8_character(bytes, i));
    const bool swap_up = letter_case == LetterCase::kSwap && u_islower(c) != 0;
    const bool first =
        begins && (letter_case == LetterCase::kTitle || letter_case == LetterCase::kCapitalize);
    const bool upper = letter_case == LetterCase::kUpper || swap_up || first;
    const UChar32 changed = first ? u_totitle(c) : upper ? u_toupper(c) : u_tolower(c);
    append_character(static_cast<uint32_t>(changed), text.from_template_at(i), all);
    begins = letter_case == LetterCase::kTitle && u_isalpha(c) == 0;
  }
  return all;
}

TracedText indented(const TracedText& text, const TracedText& indent, bool first, bool blank) {
  const std::string& bytes = text.bytes();
  TracedText all;
  for (size_t begin = 0; begin <= bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const bool is_first = begin == 0;
    if (is_first ? first : (blank || end > begin)) all.append(indent);
    const size_t next = std::min(end + 1, bytes.size());
    all.append(text, begin, next);
    if (end == bytes.size()) break;
    begin = end + 1;
  }
  return all;
}

TracedText formatted(Machine& machine, const TracedText& text, const Arguments& arguments) {
  const std::string& bytes = text.bytes();
  TracedText all;
  size_t automatic = 0;
  for (size_t i = 0; i < bytes.size();) {
    const bool brace = bytes[i] == '{' || bytes[i] == '}';
    if (!brace || (i + 1 < bytes.size() && bytes[i + 1] == bytes[i])) {
      const size_t length = utf8_length(bytes[i]);
      all.append(text, i, i + length);
      i += brace ? 2 : length;
      continue;
    }
    const size_t end = bytes[i] == '{' ? bytes.find('}', i) : std::string::npos;
    if (end == std::string::npos) machine.fail("a single brace in a text to be formatted");
    const std::string name = bytes.substr(i + 1, end - i - 1);
    const bool digits =
        !name.empty() && name.size() < 6 && name.find_first_not_of("0123456789") == std::string::npos;
    const size_t place = name.empty() ? automatic++
                         : digits     ? static_cast<size_t>(std::stoul(name))
                                      : SIZE_MAX;
    const Value* value = arguments.find(place, name);
    if (value == nullptr) machine.fail("a text to be formatted has a place for which there is nothing");
    all.append(written(machine, *value));
    machine.check_length(all.size());
    machine.step();
    i = end + 1;
  }
  return all;
}

TracedText percent_formatted(Machine& machine, const TracedText& text, const Arguments& arguments) {
  const std::string& bytes = text.bytes();
  TracedText all;
  size_t next = 0;
  for (size_t i = 0; i < bytes.size();) {
    if (bytes[i] != '%') {
      const size_t end = std::min(bytes.find('%', i), bytes.size());
      all.append(text, i, end);
      i = end;
      continue;
    }
    const char kind = i + 1 < bytes.size() ? bytes[i + 1] : ' ';
    i += 2;
    machine.step();
    if (kind == '%') {
      all.append("%", text.from_template_at(i - 1));
      continue;
    }
    if (next >= arguments.positional.size())
      machine.fail("a text to be formatted has a place for which there is nothing");
    const Value& value = arguments.positional[next++];
    if (kind == 's') {
      all.append(written(machine, value));
    } else if ((kind == 'd' || kind == 'i') && is_number(value)) {
      const auto* number = std::get_if<double>(&value);
      all.append(number == nullptr ? std::to_string(integer_argument(machine, &value, 0))
                                   : fmt::format("{:.0f}", std::trunc(*number)),
                 true);
    } else if (kind == 'f' && is_number(value)) {
      all.append(fmt::format("{:.6f}", as_double(value)), true);
    } else {
      machine.fail("of formats with a percent sign only %s, %d and %f are known");
    }
    machine.check_length(all.size());
  }
  return all;
}

}  // namespace verbatim::jinja
