# lockstep_room(NAME SOURCES ... [APART ...] [PUBLIC ...] [PRIVATE ...] [COLD]): one static library per folder of src/.
# A COLD room has no code that runs in a training step; a release build optimises it less and compiles it in a quarter
# less time.
# lockstep_test(NAME SOURCES ... LIBS ... [APART ...] [LABELS ...] [ENVIRONMENT ...] [TIMEOUT seconds] [OPTIMIZED]
# [ALONE]): GoogleTest cases that ctest runs as NAME. The tests of a folder with the same sanitizer labels share one
# program, whose sources are compiled together; ctest starts it once per test, with the cases of that test's sources
# (tests/main.cpp). List a source whose names collide with others under APART. Use ALONE for a test that needs its own
# program. Afterwards test_program is the program's target. Compiling most tests costs more than running them, so they
# are not optimised, except OPTIMIZED ones, which compute much themselves.
#
# Labels: `asan` (readers of foreign data: test.sh runs it only under that sanitizer, with --all in release too),
# `asan_all` (in release, and with `test.sh --all` under that sanitizer too), `tsan` (also run under that sanitizer),
# `tsan_all` (the same only with `test.sh --all`), `fuzz` (a fuzz target) and `slow` (only with `test.sh --all`). The
# targets asan_tests, tsan_tests and tsan_all_tests build just the programs they need.

add_library(lockstep_flags INTERFACE)
target_compile_options(lockstep_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(lockstep_flags INTERFACE -Wthread-safety)
elseif(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(lockstep_flags INTERFACE -Wno-restrict)  # gcc 12 falsely reports overlaps in std::string
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc collects garbage only from 400 MB on: up to a fifth less time to compile, for a quarter more memory.
  add_compile_options(--param=ggc-min-heapsize=409600)
endif()
if(LOCKSTEP_SANITIZE)
  add_compile_options(-fsanitize=${LOCKSTEP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LOCKSTEP_SANITIZE})
endif()
if(LOCKSTEP_SANITIZE MATCHES undefined)
  # A null pointer ends the program anyway; the other checks find little for their compile time.
  add_compile_options(-fno-sanitize=null,object-size,vptr)
endif()
add_custom_target(asan_tests)
add_custom_target(tsan_tests)
add_custom_target(tsan_all_tests)
add_dependencies(tsan_all_tests tsan_tests)
option(LOCKSTEP_ASAN_TESTS_TOO "Without sanitizers, `all` has the tests that test.sh runs under asan, too" ON)

# Uses lld if present: it links in a tenth of the time.
find_program(LOCKSTEP_LLD ld.lld)
if(LOCKSTEP_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# The headers that most tests use, compiled once for all of them. The preset dev and clang-tidy do without, to check
# that every source includes what it uses.
option(LOCKSTEP_PRECOMPILE "Precompile the headers that most tests use" OFF)
set(test_headers <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp> <algorithm> <array> <atomic> <chrono> <cmath> <cstdint>
    <filesystem> <functional> <limits> <map> <memory> <mutex> <optional> <span> <string> <string_view> <thread> <vector>)
# Requirements of ccache: regenerated headers count as the same headers, and the preprocessor keeps them apart.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(precompiled_options "SHELL:-Xclang -fno-pch-timestamp")
else()
  set(precompiled_options -fpch-preprocess)
endif()

# Sources of a room that are compiled together read their headers once, which saves two thirds of the time. So names in
# the anonymous namespaces of a room must differ; a source whose names do not is listed under APART and compiled
# separately.
option(LOCKSTEP_TOGETHER "Compile several sources of a room at a time" OFF)
set(LOCKSTEP_APART "" CACHE STRING "Rooms whose sources are compiled one by one all the same, e.g. ps;lab: quicker to change")
set(sources_together 20)

function(lockstep_compile_together target)
  cmake_parse_arguments(ROOM "" "" "APART" ${ARGN})
  if(NOT LOCKSTEP_TOGETHER OR "${target}" MATCHES "^lockstep_(.*)$" AND CMAKE_MATCH_1 IN_LIST LOCKSTEP_APART)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${sources_together})
  set_source_files_properties(${ROOM_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # mistakes sources for headers
  endif()
endfunction()

# All tests with the same compiler options share precompiled headers: those of an object library with these options.
function(lockstep_precompile_test target)
  if(NOT LOCKSTEP_PRECOMPILE)
    return()
  endif()
  string(MAKE_C_IDENTIFIER "test_headers${ARGN}" headers)
  if(NOT TARGET ${headers})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${headers}.cpp CONTENT "")
    add_library(${headers} OBJECT ${PROJECT_BINARY_DIR}/${headers}.cpp)
    set_target_properties(${headers} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${headers} PRIVATE -fPIE ${ARGN} ${precompiled_options})  # as for programs
    target_link_libraries(${headers} PRIVATE lockstep_flags GTest::gtest GTest::gmock nlohmann_json::nlohmann_json)
    target_precompile_headers(${headers} PRIVATE ${test_headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
  target_compile_options(${target} PRIVATE ${precompiled_options})
endfunction()

# Sanitizer builds are not optimised, which halves their time, except rooms that compute much.
function(lockstep_always_optimize)
  if(LOCKSTEP_SANITIZE)
    foreach(target ${ARGN})
      target_compile_options(${target} PRIVATE -O1)
    endforeach()
  endif()
endfunction()

# Highway compiles vector code once per instruction set, which is most of its compile time, and chooses at run time;
# SSE4 is the minimum. A sanitizer build has SSE4 alone if it does not test kernels.
option(LOCKSTEP_SANITIZE_VECTORS "With sanitizers, compile vector code for all instruction sets" ON)
function(lockstep_vector_code target)
  set(disabled "HWY_SCALAR|HWY_EMU128|HWY_SSSE3")
  if(LOCKSTEP_SANITIZE AND NOT LOCKSTEP_SANITIZE_VECTORS)
    string(APPEND disabled "|HWY_AVX2|HWY_AVX3|HWY_AVX3_DL")
  endif()
  target_compile_definitions(${target} PRIVATE HWY_WANT_SSE4=1 "HWY_DISABLED_TARGETS=(${disabled})")
endfunction()

set_property(GLOBAL PROPERTY LOCKSTEP_ROOMS "")

function(lockstep_room name)
  cmake_parse_arguments(ROOM "COLD" "" "SOURCES;APART;PUBLIC;PRIVATE" ${ARGN})
  set(target lockstep_${name})
  add_library(${target} STATIC ${ROOM_SOURCES} ${ROOM_APART})
  add_library(lockstep::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${ROOM_PUBLIC} PRIVATE $<BUILD_INTERFACE:lockstep_flags> ${ROOM_PRIVATE})
  if(ROOM_COLD)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  lockstep_compile_together(${target} APART ${ROOM_APART})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_ROOMS ${target})
endfunction()

# Lets `asan_tests`, `tsan_tests` and `tsan_all_tests` build a target whose tests have these labels.
function(lockstep_test_needs target)
  foreach(sanitizer asan tsan tsan_all)
    if(sanitizer IN_LIST ARGN)
      add_dependencies(${sanitizer}_tests ${target})
    endif()
  endforeach()
endfunction()

# Compiler options of a test. A test that test.sh does not run under a sanitizer is not instrumented: it is built for
# the compiler's warnings, with instrumented rooms.
function(lockstep_test_options target optimized)
  set(options)
  if(NOT optimized)
    list(APPEND options -O0)
  elseif(LOCKSTEP_SANITIZE)
    list(APPEND options -O1)
  endif()
  if(LOCKSTEP_SANITIZE MATCHES address AND NOT asan IN_LIST ARGN AND NOT asan_all IN_LIST ARGN)
    list(APPEND options -g0 -fno-sanitize=all)
  endif()
  target_compile_options(${target} PRIVATE ${options})
  if(NOT optimized)
    lockstep_precompile_test(${target} ${options})
  endif()
endfunction()

# Returns the program with the tests of this folder with these labels; creates it on first use.
function(lockstep_test_program program)
  if(TARGET ${program})
    return()
  endif()
  cmake_parse_arguments(TEST "OPTIMIZED" "" "LABELS" ${ARGN})
  add_executable(${program})
  if(asan IN_LIST TEST_LABELS AND NOT LOCKSTEP_SANITIZE AND NOT LOCKSTEP_ASAN_TESTS_TOO)
    set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${program} PRIVATE lockstep_flags lockstep_test_main GTest::gtest GTest::gmock)
  lockstep_test_options(${program} ${TEST_OPTIMIZED} ${TEST_LABELS})
  lockstep_compile_together(${program})
endfunction()

# Returns the name of a folder's program: transport_asan_tsan_tests.
function(lockstep_test_program_name result)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  set(program ${folder})
  foreach(sanitizer asan asan_all tsan tsan_all)
    if(sanitizer IN_LIST ARGN)
      string(APPEND program _${sanitizer})
    endif()
  endforeach()
  string(MAKE_C_IDENTIFIER ${program}_tests program)
  set(${result} ${program} PARENT_SCOPE)
endfunction()

function(lockstep_test name)
  cmake_parse_arguments(TEST "OPTIMIZED;ALONE" "TIMEOUT" "SOURCES;APART;LIBS;LABELS;ENVIRONMENT" ${ARGN})
  set(program ${name})
  set(arguments)
  if(NOT TEST_ALONE)
    lockstep_test_program_name(program ${TEST_LABELS})
    list(JOIN TEST_SOURCES "," sources)
    list(JOIN TEST_APART "," apart)
    set(arguments "--sources=${sources},${apart}")
  endif()
  set(optimized)
  if(TEST_OPTIMIZED)
    set(optimized OPTIMIZED)
  endif()
  lockstep_test_program(${program} ${optimized} LABELS ${TEST_LABELS})
  target_sources(${program} PRIVATE ${TEST_SOURCES} ${TEST_APART})
  set_source_files_properties(${TEST_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_libraries(${program} PRIVATE ${TEST_LIBS})
  if(NOT TEST_ALONE)
    add_custom_target(${name} DEPENDS ${program})
  endif()
  lockstep_test_needs(${name} ${TEST_LABELS})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${program} ${arguments})
  set_tests_properties(${name} PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${TEST_TIMEOUT}
                       ENVIRONMENT "GOMP_SPINCOUNT=4000;${TEST_ENVIRONMENT}")
  set(test_program ${program} PARENT_SCOPE)
endfunction()
