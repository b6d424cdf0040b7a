#!/usr/bin/env bash
# Puts mended faults back, one patch of tests/simulation/put_back/ at a time, and says after how many histories the
# simulation finds each; fails if it does not find one. Compiles copies of the patched sources into a program of its
# own, so it changes neither the sources nor the build.
#   tests/simulation/put_back.sh BUILD-FOLDER [PATCH...]     e.g. build/release
#   tests/simulation/put_back.sh --check                     only: do all patches apply?
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly most=50000 # histories
patches=(tests/simulation/put_back/*.patch)
if [[ "$1" == --check ]]; then
  for patch in "${patches[@]}"; do git apply --check "$patch"; done
  exit 0
fi
build="$(realpath "$1")"
shift
if (($# > 0)); then patches=("$@"); fi
program=tests/simulation/simulation_tests
commands="$(ninja -C "$build" -t commands "$program")"
# The command for some source of the room, without its files; and the command that links the tests.
compile="$(grep -m 1 -E -- ' -c [^ ]*(/src/allreduce/|/lockstep_allreduce\.dir/)[^ ]*$' <<< "$commands" |
  sed -E 's/ -(MD|MT [^ ]+|MF [^ ]+|o [^ ]+|c [^ ]+)//g')"
link="$(tail -n 1 <<< "$commands")"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
unfound=0
for patch in "${patches[@]}"; do
  rm -rf "${work:?}"/*
  mkdir "$work/src"
  cp -r src/allreduce "$work/src/"
  patch="$(realpath "$patch")"
  (cd "$work" && git apply "$patch")
  # All parts of the decisions, as some may have been compiled into each other. The linker takes the first definition.
  for source in "$work"/src/allreduce/elastic/{assembly*,relay}.cpp; do echo "#include \"$source\""; done > "$work/all.cpp"
  (cd "$build" && bash -c "${compile/ -I/ -I$work/src -I} -o $work/all.o -c $work/all.cpp" &&
    bash -c "${link/ -o $program/ $work/all.o -o $work/tests -Wl,--allow-multiple-definition}")
  suite=ElasticGroups
  if grep -q '^+++ .*/relay' "$patch"; then suite=LargeGroups; fi
  found="$("$work/tests" --sources=elastic_test.cpp --gtest_filter="$suite.*EveryHistory" \
    --histories="$most" | grep -m 2 -E ', seed [0-9]+: | faults are enough' || true)"
  echo "$(basename "$patch" .patch): ${found:-not found in $most histories}"
  [[ -n "$found" ]] || unfound=1
done
exit "$unfound"
