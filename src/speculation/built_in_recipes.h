#pragma once

#include <span>
#include <string_view>

namespace verbatim {

/// A file of recipes/ as compiled into the program.
struct BuiltInRecipe {
  std::string_view name;  ///< the file's name without its ending
  std::string_view toml;
};

/// All built-in recipes, in no particular order.
std::span<const BuiltInRecipe> built_in_recipes();

}  // namespace verbatim
