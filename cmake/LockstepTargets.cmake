# lockstep_room(NAME SOURCES ... [PUBLIC ...] [PRIVATE ...]): one static library per folder of src/.
# lockstep_test(NAME SOURCES ... LIBS ... [LABELS ...] [ENVIRONMENT ...] [TIMEOUT seconds]): one GoogleTest program.
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

function(lockstep_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;LIBS;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE lockstep_flags ${TEST_LIBS} GTest::gtest_main GTest::gmock)
  lockstep_test_needs(${name} ${TEST_LABELS})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${TEST_LABELS}" TIMEOUT ${TEST_TIMEOUT}
                       ENVIRONMENT "GOMP_SPINCOUNT=4000;${TEST_ENVIRONMENT}")
endfunction()
