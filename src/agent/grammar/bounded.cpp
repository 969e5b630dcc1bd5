#include "agent/grammar/bounded.h"

#include <algorithm>

namespace verbatim::agent {

namespace {

std::vector<Structure> structures_of(std::vector<Bounded> parts) {
  std::vector<Structure> structures;
  for (Bounded& part : parts) structures.push_back(std::move(part.structure));
  return structures;
}

}  // namespace

Bounded Bounded::text(std::string_view text) {
  return {.structure = Structure::text(text), .bytes = std::ssize(text)};
}

Bounded Bounded::regex(std::string_view pattern, int64_t bytes) {
  return {.structure = Structure::regex(pattern), .bytes = bytes};
}

Bounded Bounded::json_schema(std::string_view schema, int64_t bytes) {
  return {.structure = Structure::json_schema(schema), .bytes = bytes};
}

Bounded Bounded::sequence(std::vector<Bounded> parts) {
  int64_t bytes = 0;
  for (const Bounded& part : parts) bytes += part.bytes;
  return {.structure = Structure::sequence(structures_of(std::move(parts))), .bytes = bytes};
}

Bounded Bounded::choice(std::vector<Bounded> parts) {
  int64_t bytes = 0;
  for (const Bounded& part : parts) bytes = std::max(bytes, part.bytes);
  return {.structure = Structure::choice(structures_of(std::move(parts))), .bytes = bytes};
}

Bounded Bounded::repeat(Bounded part, int least, int most, std::string_view separator) {
  const int64_t bytes = most == 0 ? 0 : most * part.bytes + (most - 1) * std::ssize(separator);
  return {.structure = Structure::repeat(std::move(part.structure), least, most, separator), .bytes = bytes};
}

}  // namespace verbatim::agent
