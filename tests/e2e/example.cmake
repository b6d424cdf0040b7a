# Installs Lockstep into a fresh folder, then configures, builds and runs an example against it, as a user would.
# cmake -DBUILD=... -DSOURCE=... -DNAME=... -DWORK=... -DCOMPILER=... -DTYPE=... -P example.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/run)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
foreach(room base train)
  if(EXISTS ${WORK}/prefix/include/${room})
    message(FATAL_ERROR "only include/lockstep may be installed, but there is ${room}")
  endif()
endforeach()
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/${NAME} -B ${WORK}/build -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_BUILD_TYPE=${TYPE} -DCMAKE_CXX_COMPILER=${COMPILER})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_COMMAND} -E chdir ${WORK}/run ${WORK}/build/${NAME})
run(${WORK}/prefix/bin/lockstep --version)
