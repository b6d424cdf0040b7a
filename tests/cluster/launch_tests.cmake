# Child processes and their supervision.
add_executable(role_helper role_helper.cpp)
target_link_libraries(role_helper PRIVATE lockstep_flags lockstep::cluster lockstep::launch)

foreach(name process supervisor launch)
  lockstep_test(cluster_${name}_test
    SOURCES ${name}_test.cpp
    LIBS lockstep::cluster lockstep::launch
    LABELS cluster asan_all tsan
    ENVIRONMENT LOCKSTEP_ROLE_HELPER=$<TARGET_FILE:role_helper>)
  add_dependencies(cluster_${name}_test role_helper)
endforeach()
