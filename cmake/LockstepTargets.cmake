# lockstep_room(NAME SOURCES ... [PUBLIC ...] [PRIVATE ...]): one static library per folder of src/.
# lockstep_test(NAME SOURCES ... LIBS ... [LABELS ...] [ENVIRONMENT ...] [TIMEOUT seconds] [OPTIMIZED]): one GoogleTest
# program. To compile most tests costs more than to run them, so they are not optimised, except OPTIMIZED ones, which
# compute much themselves.
#
# Labels that mean something here: `asan` and `tsan` (also run under that sanitizer by test.sh), `fuzz` (a fuzz target)
# and `slow` (only with `test.sh --all`). The targets asan_tests and tsan_tests build just the programs they need.

add_library(lockstep_flags INTERFACE)
target_compile_options(lockstep_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(lockstep_flags INTERFACE -Wthread-safety)
elseif(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(lockstep_flags INTERFACE -Wno-restrict)  # gcc 12 sees overlaps in std::string that are none
endif()
if(LOCKSTEP_SANITIZE)
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
endif()
add_custom_target(asan_tests)
add_custom_target(tsan_tests)

# The headers that most sources use, compiled once for a room or for all tests. The rooms of a release build go without,
# so that every source shows there that it includes what it uses; tests show it in the preset dev and to clang-tidy.
option(LOCKSTEP_PRECOMPILE "Precompile the headers that most sources use" OFF)
set(room_headers <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory>
    <mutex> <optional> <span> <string> <string_view> <thread> <vector>)
set(test_headers <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp> ${room_headers})
# What ccache asks for: headers that are made again are the same headers, and the preprocessor keeps them apart.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(precompiled_options "SHELL:-Xclang -fno-pch-timestamp")
else()
  set(precompiled_options -fpch-preprocess)
endif()

function(lockstep_precompile_room target)
  cmake_parse_arguments(ROOM "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  list(LENGTH ROOM_SOURCES sources)
  # Not with gcc 12, which then takes the standard library for our code and warns of overflows that are none.
  if(LOCKSTEP_PRECOMPILE AND LOCKSTEP_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND sources GREATER_EQUAL 8)
    if(fmt::fmt IN_LIST ROOM_PRIVATE)
      list(APPEND room_headers <fmt/format.h>)
    endif()
    target_precompile_headers(${target} PRIVATE ${room_headers})
    target_compile_options(${target} PRIVATE ${precompiled_options})
  endif()
endfunction()

# All tests with the same compiler options share precompiled headers: those of an object library that has the options.
function(lockstep_precompile_test target)
  if(NOT LOCKSTEP_PRECOMPILE)
    return()
  endif()
  string(MAKE_C_IDENTIFIER "test_headers${ARGN}" headers)
  if(NOT TARGET ${headers})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${headers}.cpp CONTENT "")
    add_library(${headers} OBJECT ${PROJECT_BINARY_DIR}/${headers}.cpp)
    set_target_properties(${headers} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${headers} PRIVATE -fPIE ${ARGN} ${precompiled_options})  # as programs are compiled
    target_link_libraries(${headers} PRIVATE lockstep_flags GTest::gtest GTest::gmock nlohmann_json::nlohmann_json)
    target_precompile_headers(${headers} PRIVATE ${test_headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
  target_compile_options(${target} PRIVATE ${precompiled_options})
endfunction()

set_property(GLOBAL PROPERTY LOCKSTEP_ROOMS "")

function(lockstep_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target lockstep_${name})
  add_library(${target} STATIC ${ROOM_SOURCES})
  add_library(lockstep::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${ROOM_PUBLIC} PRIVATE $<BUILD_INTERFACE:lockstep_flags> ${ROOM_PRIVATE})
  lockstep_precompile_room(${target} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_ROOMS ${target})
endfunction()

# Lets `asan_tests` and `tsan_tests` build a target that tests with these labels run.
function(lockstep_test_needs target)
  foreach(sanitizer asan tsan)
    if(sanitizer IN_LIST ARGN)
      add_dependencies(${sanitizer}_tests ${target})
    endif()
  endforeach()
endfunction()

# What a test is compiled with. A sanitizer need not see tests that test.sh does not run under it: they are built for the
# compiler's warnings, and still use rooms that it sees.
function(lockstep_test_options target optimized)
  set(options)
  if(NOT optimized)
    list(APPEND options -O0)
  endif()
  if(LOCKSTEP_SANITIZE MATCHES address AND NOT asan IN_LIST ARGN)
    list(APPEND options -g0 -fno-sanitize=all)
  endif()
  target_compile_options(${target} PRIVATE ${options})
  if(NOT optimized)
    lockstep_precompile_test(${target} ${options})
  endif()
endfunction()

function(lockstep_test name)
  cmake_parse_arguments(TEST "OPTIMIZED" "TIMEOUT" "SOURCES;LIBS;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE lockstep_flags ${TEST_LIBS} GTest::gtest_main GTest::gmock)
  lockstep_test_options(${name} ${TEST_OPTIMIZED} ${TEST_LABELS})
  lockstep_test_needs(${name} ${TEST_LABELS})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${TEST_TIMEOUT}
                       ENVIRONMENT "GOMP_SPINCOUNT=4000;${TEST_ENVIRONMENT}")
endfunction()
