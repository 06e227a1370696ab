# libtilewright.so.1: every object of the library with the C ABI of c/tilewright.h as its only symbols. It has copies
# of fmt and libcrypto for itself, so that it loads together with a program's own (docs/decisions/0047-c-abi.md).
add_library(tilewright_c SHARED $<TARGET_OBJECTS:tilewright>)
add_library(tilewright::c ALIAS tilewright_c)
set_target_properties(tilewright_c PROPERTIES
  OUTPUT_NAME tilewright EXPORT_NAME c VERSION 1 SOVERSION 1 LINKER_LANGUAGE CXX
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/c/libtilewright.map)
target_include_directories(tilewright_c INTERFACE
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# Threads of the pool and libcrypto's exit handlers run until the process ends, so dlclose() unmaps nothing.
target_link_options(tilewright_c PRIVATE
  -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/c/libtilewright.map -Wl,-z,nodelete)
if(NOT TILEWRIGHT_SANITIZE)
  target_link_options(tilewright_c PRIVATE -Wl,-z,defs)  # a sanitizer's functions come from the program
endif()
target_link_libraries(tilewright_c PRIVATE Threads::Threads ${CMAKE_DL_LIBS})

if(NOT TILEWRIGHT_FMT_HEADER_ONLY)
  target_sources(tilewright_c PRIVATE c/fmt_copy.cpp)
  set_source_files_properties(c/fmt_copy.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
    INCLUDE_DIRECTORIES $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
endif()

# A package manager's own OpenSSL::Crypto names no file, and is linked as it is.
if(OPENSSL_CRYPTO_LIBRARY)
  cmake_path(GET OPENSSL_CRYPTO_LIBRARY PARENT_PATH openssl_folder)
  find_library(TILEWRIGHT_STATIC_LIBCRYPTO libcrypto.a HINTS ${openssl_folder}
    DOC "libcrypto as an archive of position-independent code, for libtilewright.so.1")
endif()
if(TILEWRIGHT_STATIC_LIBCRYPTO)
  target_link_libraries(tilewright_c PRIVATE ${TILEWRIGHT_STATIC_LIBCRYPTO})
else()
  message(STATUS "libcrypto.a was not found: libtilewright.so.1 links OpenSSL::Crypto")
  target_link_libraries(tilewright_c PRIVATE OpenSSL::Crypto)
endif()
