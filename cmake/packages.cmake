# The Debian packages, one for each component of cmake/install.cmake. scripts/build-packages builds them.

# Whoever hands packages on puts the address in here at which users reach them; example.org is nobody's.
set(VERBATIM_MAINTAINER "Verbatim maintainers <verbatim@example.org>" CACHE STRING
  "The name and address that packages give as their maintainer's")

# Pages of the manual and completions are made from the program's own help; see scripts/describe-program.
set(pages ${PROJECT_BINARY_DIR}/pages)
add_custom_target(pages
  COMMAND ${PROJECT_SOURCE_DIR}/scripts/describe-program $<TARGET_FILE:verbatim_program> ${pages}
          ${VERBATIM_MAINTAINER}
  VERBATIM)
add_dependencies(pages verbatim_program)

# All that is packaged. Building packages does not build tests and the laboratory.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
add_custom_target(packaged)
foreach(part verbatim_program verbatim verbatim_shared verbatim_serve verbatim_agent verbatim_python pages)
  if(TARGET ${part})
    add_dependencies(packaged ${part})
  endif()
endforeach()
foreach(page IN ITEMS man:${CMAKE_INSTALL_MANDIR}/man1 bash:${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        zsh:${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions fish:${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  string(REPLACE ":" ";" page ${page})
  list(GET page 0 kind)
  list(GET page 1 folder)
  install(DIRECTORY ${pages}/${kind}/ DESTINATION ${folder} COMPONENT program OPTIONAL)
endforeach()
if(VERBATIM_BUILD_SERVER)
  install(FILES ${PROJECT_SOURCE_DIR}/examples/server/verbatim.service DESTINATION lib/systemd/system
    COMPONENT program)
endif()

set(packages program:verbatim library:libverbatim0 development:libverbatim-dev)
# Python's package, where it is built: its files are the component `python`.
if(TARGET verbatim_python)
  list(APPEND packages python:python3-verbatim)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME verbatim)
set(CPACK_PACKAGE_VENDOR "Verbatim")
set(CPACK_PACKAGE_CONTACT ${VERBATIM_MAINTAINER})
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION misc)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# CPack begins each line after the first with the space that the format wants.
set(about "Verbatim runs language models on CPUs. A few bits of a model's own weights
draft the next tokens, all of its bits verify them in one pass, and the text
is the one that plain decoding would have given, byte for byte.")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "language models, faster without changing a byte\n${about}
.
This package has the program and its server.")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "language models for programs: the shared library\n${about}
.
This package has the library with the interface for C.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "language models for programs: headers and static library\n${about}
.
This package has what programs in C and C++ are built with.")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "language models for Python programs\n${about}
.
This package has the module for Python.")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/python/postinst
  ${CMAKE_CURRENT_LIST_DIR}/python/prerm)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.11), python3 (<< 3.12), python3-numpy")
file(WRITE ${PROJECT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)
set(CPACK_POST_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/without_ldconfig.cmake)
# What the static library is linked with. The interface for C needs libverbatim0 alone.
set(development_depends "libverbatim0 (= ${PROJECT_VERSION})" libc6-dev libfmt-dev libtomlplusplus-dev
  libsentencepiece-dev libpcre2-dev libicu-dev)
if(VERBATIM_BUILD_SERVER)
  list(APPEND development_depends libspdlog-dev prometheus-cpp-dev libssl-dev)
endif()
if(VERBATIM_AGENT)
  list(APPEND development_depends libssl-dev libsqlite3-dev)
  list(REMOVE_DUPLICATES development_depends)
endif()
list(JOIN development_depends ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)

# Each package says under which terms it comes and what it is a build of.
set(CPACK_COMPONENTS_ALL "")
foreach(package IN LISTS packages)
  string(REPLACE ":" ";" package ${package})
  list(GET package 0 component)
  list(GET package 1 name)
  string(TOUPPER ${component} COMPONENT)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME ${name})
  install(FILES ${CMAKE_CURRENT_LIST_DIR}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
    COMPONENT ${component})
  install(FILES ${pages}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component} OPTIONAL)
endforeach()
include(CPack)
