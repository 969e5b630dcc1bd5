# Writes OUTPUT, a C++ source that holds the FILES of the page, which lie in FOLDER, as bytes.
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_mjs "text/javascript; charset=utf-8")
set(type_json "application/json")
set(type_webmanifest "application/manifest+json")
set(type_svg "image/svg+xml")
set(type_png "image/png")
set(type_ico "image/x-icon")
set(type_woff2 "font/woff2")
set(type_txt "text/plain; charset=utf-8")

set(entries "")
foreach(file IN LISTS FILES)
  file(RELATIVE_PATH name ${FOLDER} ${file})
  string(REGEX REPLACE "^.*\\.([^.]+)$" "\\1" ending ${name})
  if(NOT DEFINED type_${ending})
    message(FATAL_ERROR "scripts/embed_page.cmake knows no content type for ${name}")
  endif()
  set(path "/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  file(SHA256 ${file} digest)
  string(SUBSTRING ${digest} 0 16 digest)
  file(READ ${file} bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
  string(APPEND entries
    "    {\"${path}\", \"${type_${ending}}\", \"\\\"${digest}\\\"\",\n     std::string_view(\"${bytes}\", ${size})},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"serve/page.h\"

namespace verbatim::serve {

std::span<const PageFile> page_files() {
  static constexpr PageFile files[] = {
${entries}  };
  return files;
}

}  // namespace verbatim::serve
")
