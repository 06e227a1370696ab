include(CMakePackageConfigHelpers)

install(TARGETS tilewright EXPORT tilewrightTargets)
install(FILES tilewright.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tilewright)
