# What `cmake --install` installs: the program, the libraries with their public headers, and the files by which
# find_package(Verbatim) and pkg-config find them. Its components are the Debian packages of cmake/packages.cmake.
if(EXISTS /etc/debian_version AND CMAKE_LIBRARY_ARCHITECTURE)
  # As Debian's own packages, whatever the prefix: CMake, pkg-config and the linker look there.
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Verbatim)
install(TARGETS verbatim EXPORT VerbatimTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(VERBATIM_BUILD_SERVER)
  set_target_properties(verbatim_serve PROPERTIES EXPORT_NAME serve)
  install(TARGETS verbatim_serve EXPORT VerbatimTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT development INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
if(VERBATIM_AGENT)
  set_target_properties(verbatim_agent PROPERTIES EXPORT_NAME agent)
  install(TARGETS verbatim_agent EXPORT VerbatimTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT development INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
set_target_properties(verbatim_accelerator PROPERTIES EXPORT_NAME accelerator)
install(TARGETS verbatim_accelerator EXPORT VerbatimTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT development INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set_target_properties(verbatim_shared PROPERTIES EXPORT_NAME c)
install(TARGETS verbatim_shared EXPORT VerbatimCTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS verbatim_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/verbatim DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development)
foreach(export VerbatimTargets VerbatimCTargets)
  install(EXPORT ${export} NAMESPACE Verbatim:: DESTINATION ${package_folder} COMPONENT development)
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/VerbatimConfig.cmake.in
  ${PROJECT_BINARY_DIR}/VerbatimConfig.cmake INSTALL_DESTINATION ${package_folder})
# Before version 1 every minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/VerbatimConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/VerbatimConfig.cmake ${PROJECT_BINARY_DIR}/VerbatimConfigVersion.cmake
  DESTINATION ${package_folder} COMPONENT development)
configure_file(${CMAKE_CURRENT_LIST_DIR}/verbatim.pc.in ${PROJECT_BINARY_DIR}/verbatim.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/verbatim.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
