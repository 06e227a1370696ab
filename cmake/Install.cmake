include(CMakePackageConfigHelpers)
include(${CMAKE_CURRENT_LIST_DIR}/PublicHeaders.cmake)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tilewright)

# Components are the Debian packages of cmake/Packages.cmake: runtime, dev, tool and doc.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)
install(TARGETS tilewright EXPORT tilewrightTargets
  ARCHIVE COMPONENT dev LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev)
install(EXPORT tilewrightTargets NAMESPACE tilewright:: DESTINATION ${package_dir})
install(FILES c/tilewright.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# Public headers include each other by relative path, so they are installed with their folders.
# <tilewright.hpp> leads there; <tilewright/cache/...> is for programs that use the cache alone.
foreach(header IN LISTS TILEWRIGHT_PUBLIC_HEADERS)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tilewright/${folder})
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/forward/tilewright.hpp
  "#pragma once\n\n#include \"tilewright/tilewright.hpp\"\n")
install(FILES ${PROJECT_BINARY_DIR}/forward/tilewright.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

configure_package_config_file(cmake/tilewrightConfig.cmake.in
  ${PROJECT_BINARY_DIR}/tilewrightConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tilewrightConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tilewrightConfig.cmake
              ${PROJECT_BINARY_DIR}/tilewrightConfigVersion.cmake DESTINATION ${package_dir})

# The .pc file finds its prefix from where it lies, so an installed tree may be moved.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
if(NOT TILEWRIGHT_FMT_HEADER_ONLY)
  set(pkg_config_fmt " fmt")
endif()
# A program links what a static library needs. A shared library names that itself.
get_target_property(library_type tilewright TYPE)
if(library_type STREQUAL "STATIC_LIBRARY")
  # The archive by its file's name: libtilewright.so has the C ABI alone.
  set(pkg_config_name ":libtilewright.a")
  set(pkg_config_private "")
  set(pkg_config_libs " -pthread -ldl")
else()
  set(pkg_config_name tilewright_cpp)
  set(pkg_config_private ".private")
  set(pkg_config_libs "\nLibs.private: -pthread -ldl")
endif()
configure_file(cmake/tilewright.pc.in ${PROJECT_BINARY_DIR}/tilewright.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tilewright.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET tilewright_c)
  install(TARGETS tilewright_c EXPORT tilewrightCTargets LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev)
  install(EXPORT tilewrightCTargets NAMESPACE tilewright:: DESTINATION ${package_dir})
  configure_file(cmake/tilewright-c.pc.in ${PROJECT_BINARY_DIR}/tilewright-c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/tilewright-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tool)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT tool)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tool FILES_MATCHING
  PATTERN "*.json" PATTERN "*.md" PATTERN "*.py" PATTERN "*.cpp" PATTERN "*.c" PATTERN "CMakeLists.txt")
if(PROJECT_IS_TOP_LEVEL)
  include(${CMAKE_CURRENT_LIST_DIR}/Packages.cmake)
endif()
