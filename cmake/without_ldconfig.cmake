# CPack has every package with a shared library call ldconfig when it is installed and removed. Debian wants a trigger
# instead, which the package of the library has (cmake/packages.cmake), so these scripts are taken out again.
find_program(dpkg_deb dpkg-deb REQUIRED)
foreach(package IN LISTS CPACK_PACKAGE_FILES)
  if(NOT package MATCHES "/libverbatim0_[^/]*\\.deb$")
    continue()
  endif()
  set(unpacked ${package}.unpacked)
  execute_process(COMMAND ${dpkg_deb} --raw-extract ${package} ${unpacked} COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE ${unpacked}/DEBIAN/postinst ${unpacked}/DEBIAN/postrm)
  # One thread, so that the bytes do not depend on the processor.
  execute_process(COMMAND ${dpkg_deb} --root-owner-group -Zxz --threads-max=1 --build ${unpacked} ${package}
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE_RECURSE ${unpacked})
endforeach()
