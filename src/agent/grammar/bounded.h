#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "verbatim/structure.h"

namespace verbatim::agent {

/// A structure that knows how long its texts can be.
struct Bounded {
  Structure structure;
  /// The bytes that no text of the structure is longer than. A token has a byte at least, so that no more
  /// tokens are needed either.
  int64_t bytes = 0;

  static Bounded text(std::string_view text);
  /// The texts of a regular expression, none of which has more than `bytes` bytes.
  static Bounded regex(std::string_view pattern, int64_t bytes);
  /// The JSON values that a schema allows, none of which has more than `bytes` bytes.
  static Bounded json_schema(std::string_view schema, int64_t bytes);
  static Bounded sequence(std::vector<Bounded> parts);
  static Bounded choice(std::vector<Bounded> parts);
  static Bounded repeat(Bounded part, int least, int most, std::string_view separator = {});
};

}  // namespace verbatim::agent
