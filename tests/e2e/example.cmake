# Installs Lockstep into a fresh folder, then configures, builds and runs the examples against it, as a user would.
# cmake -DBUILD=... -DSOURCE=... -DWORK=... -DCOMPILER=... -DTYPE=... -P example.cmake
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
foreach(file share/man/man1/lockstep.1 share/man/man1/lockstep-train.1 share/bash-completion/completions/lockstep
             share/zsh/site-functions/_lockstep share/fish/vendor_completions.d/lockstep.fish
             share/lockstep/grafana/lockstep.json)
  if(NOT EXISTS ${WORK}/prefix/${file})
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()
foreach(name own_model own_program graph)
  run(${CMAKE_COMMAND} -S ${SOURCE}/examples/${name} -B ${WORK}/${name} -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix
      -DCMAKE_BUILD_TYPE=${TYPE} -DCMAKE_CXX_COMPILER=${COMPILER})
  run(${CMAKE_COMMAND} --build ${WORK}/${name})
endforeach()

# Runs own_program with these arguments and expects `text` in its output.
function(expect text)
  execute_process(COMMAND ${WORK}/own_program/own_program ${ARGN} WORKING_DIRECTORY ${WORK}/run RESULT_VARIABLE code
                  OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0 OR NOT out MATCHES "${text}")
    message(FATAL_ERROR "own_program ${ARGN}: exit code ${code}, and no '${text}' in:\n${out}")
  endif()
endfunction()

expect("mlp +50,890 " models)
expect("61,706" describe lenet)
expect("option hidden=32: units" describe mlp --options hidden=32)
expect("own_program eval runs/mlp-1" train mlp --dataset synthetic --train-limit 1000 --test-limit 200 --epochs 2)
expect("trained 3 epochs" train --resume runs/mlp-1 --epochs 3)
expect("mlp at step 30 on 200 test examples: accuracy" eval mlp-1 --checkpoint newest)
expect("of 3 test images right" predict mlp-1 --test 3)
expect("mlp at step .* -> mlp.onnx" export mlp-1 mlp.onnx)
expect("mlp: one hidden layer" describe runs/mlp-1)
expect("Usage: own_program train" train --help)
foreach(name own_model graph)
  file(MAKE_DIRECTORY ${WORK}/run-${name})
  run(${CMAKE_COMMAND} -E chdir ${WORK}/run-${name} ${WORK}/${name}/${name})
endforeach()
run(${WORK}/prefix/bin/lockstep --version)
