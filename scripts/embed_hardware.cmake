# Writes OUTPUT, a C++ source that holds the text of the HARDWARE files and of THRESHOLDS, a measurement.
set(entries "")
foreach(file IN LISTS HARDWARE)
  get_filename_component(name ${file} NAME_WLE)
  file(READ ${file} text)
  string(APPEND entries "    {\"${name}\", R\"toml(${text})toml\"},\n")
endforeach()
file(READ ${THRESHOLDS} thresholds)
file(WRITE ${OUTPUT} "#include \"accelerator/parameters/built_in.h\"

namespace verbatim::accelerator {

std::span<const BuiltIn> built_in_hardware() {
  static constexpr BuiltIn files[] = {
${entries}  };
  return files;
}

std::string_view built_in_thresholds() {
  return R\"json(${thresholds})json\";
}

}  // namespace verbatim::accelerator
")
