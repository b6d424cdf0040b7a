# `cmake --install`: the program, the libraries, the headers of include/lockstep and a CMake package. Your own program
# then needs only find_package(lockstep) and target_link_libraries(... lockstep::lockstep).
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY LOCKSTEP_ROOMS)

add_library(lockstep INTERFACE)
add_library(lockstep::lockstep ALIAS lockstep)
target_compile_features(lockstep INTERFACE cxx_std_20)
target_link_libraries(lockstep INTERFACE ${rooms})

install(TARGETS lockstep_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS lockstep ${rooms} EXPORT lockstep_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/lockstep)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/lockstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
install(EXPORT lockstep_targets FILE lockstep-targets.cmake NAMESPACE lockstep:: DESTINATION ${package_dir})
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/lockstep-config.cmake.in ${PROJECT_BINARY_DIR}/lockstep-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lockstep-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lockstep-config.cmake ${PROJECT_BINARY_DIR}/lockstep-config-version.cmake
        DESTINATION ${package_dir})
