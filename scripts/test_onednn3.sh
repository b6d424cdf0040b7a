#!/usr/bin/env bash
# Builds Lockstep with oneDNN 3 (from PyPI, into build/) and runs the tests that involve it: the conformance suite,
# programs and models. Debian 12 has oneDNN 2.6, so the ordinary build does not compile this code. Prints "skipped: ..."
# and exits with 0 if no package registry can be reached.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

prefix="$PWD/build/onednn3-venv"
build=build/onednn3
tests=(conformance_test graph_test program_test nn_test)

python3 tests/interchange/prepare_venv.py "$prefix" scripts/onednn3_requirements.txt ||
  { code=$?; exit $((code == 77 ? 0 : code)); }
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_TESTS=ON -DLOCKSTEP_BENCH=OFF \
  -Ddnnl_DIR="$prefix/lib/cmake/dnnl" > /dev/null
cmake --build "$build" --target "${tests[@]}" -- --quiet
ldd "$build/tests/conformance/conformance_test" | grep "$prefix" > /dev/null ||
  { echo "the tests were not linked with oneDNN from $prefix" >&2; exit 1; }
ctest --test-dir "$build" --output-on-failure --no-tests=error -R "^($(IFS='|'; echo "${tests[*]}"))(_avx2|_sse4)?\$"
