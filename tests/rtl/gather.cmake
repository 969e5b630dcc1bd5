# Writes FOLDER/all.cpp, which includes all that Verilator wrote there.
file(GLOB sources ${FOLDER}/*.cpp)
list(FILTER sources EXCLUDE REGEX "/all\\.cpp$")
list(SORT sources)
set(text "")
foreach(source IN LISTS sources)
  string(APPEND text "#include \"${source}\"\n")
endforeach()
file(WRITE ${FOLDER}/all.cpp "${text}")
