# Writes OUTPUT, a C++ source that holds the commit of the repository in FOLDER. An output that says the same already is
# left alone, so that nothing is compiled anew.
set(commit unknown)
find_program(git git)
if(git AND EXISTS ${FOLDER}/.git)
  execute_process(COMMAND ${git} -C ${FOLDER} rev-parse --short=12 HEAD OUTPUT_VARIABLE found RESULT_VARIABLE status
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(status EQUAL 0)
    execute_process(COMMAND ${git} -C ${FOLDER} status --porcelain --untracked-files=no OUTPUT_VARIABLE changed
                    ERROR_QUIET)
    set(commit ${found})
    if(NOT changed STREQUAL "")
      string(APPEND commit -dirty)
    endif()
  endif()
endif()
set(text "#include \"version_text.h\"

namespace verbatim::app {

const char* built_from_commit() {
  return \"${commit}\";
}

}  // namespace verbatim::app
")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
