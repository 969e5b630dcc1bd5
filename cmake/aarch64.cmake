# Builds for aarch64 on another machine, with Debian's cross compiler and the libraries that scripts/make-sysroot
# unpacks, and runs what was built under QEMU's user emulation. The preset "aarch64" uses it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

get_filename_component(sysroot "${CMAKE_CURRENT_LIST_DIR}/../build-aarch64/sysroot" ABSOLUTE)
set(VERBATIM_SYSROOT ${sysroot} CACHE PATH "The folder that scripts/make-sysroot filled")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES VERBATIM_SYSROOT)
if(NOT EXISTS ${VERBATIM_SYSROOT}/complete)
  message(FATAL_ERROR "no libraries for aarch64 in ${VERBATIM_SYSROOT}: run scripts/make-sysroot first")
endif()

# The compiler keeps its own C and C++ libraries; all others are the sysroot's and never this machine's.
set(CMAKE_FIND_ROOT_PATH ${VERBATIM_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(library_folder ${VERBATIM_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} ${library_folder}/pkgconfig:${VERBATIM_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${VERBATIM_SYSROOT})
set(CMAKE_EXE_LINKER_FLAGS_INIT
  "-Wl,-rpath-link,${library_folder} -Wl,-rpath-link,${VERBATIM_SYSROOT}/lib/aarch64-linux-gnu")

# QEMU looks for libraries in the sysroot before it looks elsewhere, so programs need no paths of this machine.
set(CMAKE_SKIP_BUILD_RPATH ON)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;${VERBATIM_SYSROOT})
