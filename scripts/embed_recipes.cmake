# Writes OUTPUT, a C++ source that holds the text of the RECIPES files.
set(entries "")
foreach(recipe IN LISTS RECIPES)
  get_filename_component(name ${recipe} NAME_WE)
  file(READ ${recipe} text)
  string(APPEND entries "    {\"${name}\", R\"toml(${text})toml\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"speculation/built_in_recipes.h\"

namespace verbatim {

std::span<const BuiltInRecipe> built_in_recipes() {
  static constexpr BuiltInRecipe recipes[] = {
${entries}  };
  return recipes;
}

}  // namespace verbatim
")
