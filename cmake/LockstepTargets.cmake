# lockstep_room(NAME SOURCES ... [PUBLIC ...] [PRIVATE ...] [COLD]): one static library per folder of src/. A COLD one has
# no code that computes: the address sanitizer's build does not optimise it.
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

# The headers that most sources use, compiled once. The preset dev and clang-tidy go without: there every source shows
# that it includes what it uses.
option(LOCKSTEP_PRECOMPILE "Precompile the headers that most sources use" OFF)
set(room_headers <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <filesystem> <functional> <limits> <map> <memory>
    <mutex> <optional> <span> <string> <string_view> <thread> <vector>)
set(test_headers <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp> ${room_headers})

# lockstep_precompile(TARGET HEADERS ... OPTIONS ... [LIBS ...]): all targets with the same options, and libraries that
# bring options, share the headers of an object library that has those.
function(lockstep_precompile target)
  if(NOT LOCKSTEP_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(SHARED "" "" "HEADERS;OPTIONS;LIBS" ${ARGN})
  # ccache asks for the first of each: headers that are made again are the same, and the preprocessor keeps them apart.
  # A heap full of headers is not worth searching for garbage.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(options "SHELL:-Xclang -fno-pch-timestamp")
  else()
    set(options -fpch-preprocess "SHELL:--param ggc-min-heapsize=1000000")
  endif()
  string(MAKE_C_IDENTIFIER "headers ${SHARED_OPTIONS} ${SHARED_LIBS}" headers)
  if(NOT TARGET ${headers})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${headers}.cpp CONTENT "")
    add_library(${headers} OBJECT ${PROJECT_BINARY_DIR}/${headers}.cpp)
    set_target_properties(${headers} PROPERTIES POSITION_INDEPENDENT_CODE OFF)  # the options say how
    target_compile_options(${headers} PRIVATE ${SHARED_OPTIONS} ${options})
    target_link_libraries(${headers} PRIVATE lockstep_flags ${SHARED_LIBS})
    target_precompile_headers(${headers} PRIVATE ${SHARED_HEADERS})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
  target_compile_options(${target} PRIVATE ${options})
endfunction()

set_property(GLOBAL PROPERTY LOCKSTEP_ROOMS "")

# The fuzzer sees which branches are taken in these rooms.
set(fuzzed_rooms base tensor ops interchange data transport wire cluster ps allreduce train)

# What a room is compiled with, and its headers.
function(lockstep_room_options name)
  set(options)
  if(LOCKSTEP_FUZZ AND name IN_LIST fuzzed_rooms)
    list(APPEND options -fsanitize=fuzzer-no-link)
  endif()
  if(LOCKSTEP_SANITIZE MATCHES address AND ROOM_COLD)
    list(APPEND options -O0)
  endif()
  target_compile_options(lockstep_${name} PRIVATE ${options})
  set(libs)
  foreach(lib fmt::fmt OpenMP::OpenMP_CXX)
    if(lib IN_LIST ROOM_PUBLIC OR lib IN_LIST ROOM_PRIVATE)
      list(APPEND libs ${lib})
    endif()
  endforeach()
  if(fmt::fmt IN_LIST libs)
    list(APPEND room_headers <fmt/format.h>)
  endif()
  lockstep_precompile(lockstep_${name} HEADERS ${room_headers} OPTIONS -fPIC ${options} LIBS ${libs})
endfunction()

function(lockstep_room name)
  cmake_parse_arguments(ROOM "COLD" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target lockstep_${name})
  add_library(${target} STATIC ${ROOM_SOURCES})
  add_library(lockstep::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${ROOM_PUBLIC} PRIVATE $<BUILD_INTERFACE:lockstep_flags> ${ROOM_PRIVATE})
  lockstep_room_options(${name})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_ROOMS ${target})
endfunction()

# Generated code of a room, made by the target `generated`. Our warnings do not concern it, and the address sanitizer
# watches it as little as its library.
add_custom_target(generated)
function(lockstep_generated room)
  set(options -w)
  if(LOCKSTEP_SANITIZE MATCHES address)
    list(APPEND options -fno-sanitize=address,undefined)
  endif()
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${options}" SKIP_LINTING ON
                              SKIP_PRECOMPILE_HEADERS ON)
  target_sources(lockstep_${room} PRIVATE ${ARGN})
  add_custom_target(generated_${room} DEPENDS ${ARGN})
  add_dependencies(generated generated_${room})
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
    lockstep_precompile(${target} HEADERS ${test_headers} OPTIONS -fPIE ${options}
      LIBS GTest::gtest GTest::gmock nlohmann_json::nlohmann_json)
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
