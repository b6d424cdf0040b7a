#!/usr/bin/env bash
# Puts mended faults back, one patch of tests/simulation/put_back/ at a time, and says after how many histories the
# simulation finds each. Changes the sources while it runs, and the program of the tests until it is built again.
#   tests/simulation/put_back.sh BUILD-FOLDER [PATCH...]     e.g. build/release
#   tests/simulation/put_back.sh --check                     only: do all patches apply?
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
patches=(tests/simulation/put_back/*.patch)
if [[ "$1" == --check ]]; then
  for patch in "${patches[@]}"; do git apply --check "$patch"; done
  exit 0
fi
build="$1"
shift
if (($# > 0)); then patches=("$@"); fi
for patch in "${patches[@]}"; do
  git apply "$patch"
  trap 'git apply -R "$patch"' EXIT
  cmake --build "$build" --target simulation_elastic_test > /dev/null
  found="$("$build/tests/simulation/simulation_tests" --sources=elastic_test.cpp --gtest_filter='*EveryHistory' \
    --histories=1000000 | grep -m 2 -E ', seed [0-9]+: | faults are enough' || true)"
  git apply -R "$patch"
  trap - EXIT
  echo "$(basename "$patch" .patch): ${found:-not found in 1,000,000 histories}"
done
