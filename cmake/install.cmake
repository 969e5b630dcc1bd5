# What `cmake --install` installs: the program, the library with its public headers, and the files by which
# find_package(Verbatim) finds them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Verbatim)
install(TARGETS verbatim EXPORT VerbatimTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(VERBATIM_BUILD_SERVER)
  set_target_properties(verbatim_serve PROPERTIES EXPORT_NAME serve)
  install(TARGETS verbatim_serve EXPORT VerbatimTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
install(TARGETS verbatim_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/verbatim DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT VerbatimTargets NAMESPACE Verbatim:: DESTINATION ${package_folder})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/VerbatimConfig.cmake.in
  ${PROJECT_BINARY_DIR}/VerbatimConfig.cmake INSTALL_DESTINATION ${package_folder})
# Before version 1 every minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/VerbatimConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/VerbatimConfig.cmake ${PROJECT_BINARY_DIR}/VerbatimConfigVersion.cmake
  DESTINATION ${package_folder})
