#!/usr/bin/env bash
# Builds and tests everything: the release build, and the important parts under the address, undefined-behaviour and
# thread sanitizers. Ends with one line: N passed, N failed; with ", N skipped" if something was unavailable.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/packages.sh

usage() {
  cat <<'TEXT'
usage: ./test.sh [--all] [--release-only]

  --all    also the slow tests (full training runs on real data), more tests under the sanitizers (asan_all, tsan_all), the
           tests of asan without it, the benchmarks' programs, a build with oneDNN 3, and clang-tidy over all sources. A test
           that passes only when it is run once more by itself fails the run
  --release-only
           only the tests of the release build: no sanitizers (tests/conditions/run uses it to try other machines)
TEXT
}

all=false
release_only=false
for argument in "$@"; do
  case "$argument" in
    --all) all=true ;;
    --release-only) release_only=true ;;
    -h | --help) usage; exit 0 ;;
    *) echo "test.sh: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

passed=0
failed=0
skipped=0
jobs="$(nproc)"
export CTEST_OUTPUT_ON_FAILURE=1

step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
finish() {
  printf '\n%d passed, %d failed' "$passed" "$failed"
  ((skipped == 0)) || printf ', %d skipped' "$skipped"
  printf '\n'
  exit $((failed > 0))
}
# check NAME COMMAND...: a test that is one command. A line "skipped: ..." means that it could not be run here.
check() {
  local name="$1" output
  shift
  output="$(mktemp)"
  if ! "$@" 2>&1 | tee "$output"; then
    echo "FAILED: $name" >&2
    failed=$((failed + 1))
  elif grep -q '^skipped: ' "$output"; then
    skipped=$((skipped + 1))
  else
    passed=$((passed + 1))
  fi
  rm -f "$output"
}
# compile PRESET TARGET [CMAKE-ARGUMENT...]: configures and builds.
compile() {
  local preset="$1" target="$2" quiet=()
  shift 2
  [[ -t 1 ]] || quiet=(-- --quiet)
  cmake --preset "$preset" -DLOCKSTEP_TESTS=ON "$@" > /dev/null &&
    cmake --build "build/$preset" --target "$target" "${quiet[@]}"
}
# A failed build counts as one failure and ends the script.
build_failed() {
  echo "FAILED: build of $1" >&2
  failed=$((failed + 1))
  finish
}
# The sanitizer builds, one after the other, use the cores that the release tests leave idle: those tests mostly wait.
builders=()
stop_builders() { for builder in "${builders[@]}"; do kill -- "-$builder" 2> /dev/null; done; }
trap stop_builders EXIT
compile_beside() {
  mkdir -p build
  set -m
  {
    ((${#builders[@]} == 0)) || tail --pid="${builders[-1]}" -f /dev/null
    compile "$@"
  } > "build/$1.log" 2>&1 < /dev/null &
  set +m
  builders+=($!)
  renice -n 19 -g "$!" > /dev/null
}
# wait_for_build PRESET PROCESS: gives the build all cores; shows its output if it failed.
wait_for_build() {
  renice -n 0 -g "$2" > /dev/null 2>&1
  if ! wait "$2"; then
    cat "build/$1.log"
    build_failed "$1"
  fi
}
# Whole clusters run here beside other tests and two compilers. A few failed tests are run once more, each by itself: a
# second failure means broken. A test that passes then depends on the machine's speed; it is named, and fails the run
# under --all.
again_alone() {
  local preset="$1" results="build/$1/test-results-again.xml" most=3 unsteady counts now
  ((bad > 0 && bad <= most)) || return
  unsteady="$(sed 's/^[0-9]*://' "build/$preset/Testing/Temporary/LastTestsFailed.log" | xargs)"
  printf '\nonce more, alone: %s\n' "$unsteady"
  rm -f "$results"
  ctest --test-dir "build/$preset" --rerun-failed --output-junit test-results-again.xml
  counts="$(python3 scripts/test_results.py "$results" 2> /dev/null | head -n 1)" || return
  read -r _ now _ <<< "$counts"
  ((now < bad)) || return
  # If some still fail, LastTestsFailed.log now has them; the others are the unsteady ones.
  if ((now > 0)); then
    unsteady="$(comm -23 <(tr ' ' '\n' <<< "$unsteady" | sort) \
      <(sed 's/^[0-9]*://' "build/$preset/Testing/Temporary/LastTestsFailed.log" | sort) | xargs)"
  fi
  printf 'UNSTEADY, passed only alone: %s\n' "$unsteady"
  if $all; then return; fi
  good=$((good + bad - now))
  bad="$now"
}
# run_tests PRESET CTEST-ARGUMENT...: runs tests and adds to the counts.
run_tests() {
  local preset="$1" results="build/$1/test-results.xml" counts good bad absent
  shift
  rm -f "$results"
  # Keeps all output: it names the cases that a program skipped, and why.
  ctest --test-dir "build/$preset" --output-junit test-results.xml --test-output-size-passed 10000000 --no-tests=error "$@"
  if ! counts="$(python3 scripts/test_results.py "$results")"; then
    echo "FAILED: ctest in build/$preset" >&2
    failed=$((failed + 1))
    return
  fi
  read -r good bad absent <<< "$(head -n 1 <<< "$counts")"
  [[ "$preset" != release ]] || again_alone "$preset"
  tail -n +2 <<< "$counts"
  passed=$((passed + good))
  failed=$((failed + bad))
  skipped=$((skipped + absent))
}
sources() { find bench examples include src tests tools -name '*.cpp' -o -name '*.h' | sort; }

step "packages"
if ! install_missing "${build_packages[@]}" "${test_packages[@]}"; then
  failed=1
  finish
fi

step "format"
check clang-format bash -c 'xargs clang-format --dry-run -Werror' < <(sources)

step "release: build"
everything="$($all && echo ON || echo OFF)"
compile release all "-DLOCKSTEP_BENCH=$everything" "-DLOCKSTEP_ASAN_TESTS_TOO=$everything" || build_failed release

step "release: test"
# With --all, clang also builds everything, and its warnings are errors, too.
if ! $release_only; then
  compile_beside asan "$($all && echo all || echo asan_tests)" "-DLOCKSTEP_SANITIZE_VECTORS=$everything"
  compile_beside tsan "$($all && echo tsan_all_tests || echo tsan_tests)" "-DLOCKSTEP_SANITIZE_VECTORS=$everything"
fi
# Some tests mostly wait for deadlines: two of them may run beside those that compute.
if $all; then run_tests release -j "$((jobs + 2))"; else run_tests release -LE '^(slow|asan)$' -j "$((jobs + 2))"; fi
if $release_only; then finish; fi

step "asan and fuzzing: build (clang)"
wait_for_build asan "${builders[0]}"
step "asan and fuzzing: test"
ASAN_OPTIONS="detect_leaks=1:${ASAN_OPTIONS:-}" LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0" \
  run_tests asan -L "$($all && echo '^(asan|asan_all|fuzz)$' || echo '^(asan|fuzz)$')" -LE slow -j "$((jobs + 2))"

step "tsan: build"
wait_for_build tsan "${builders[1]}"
step "tsan: test"
# OpenMP's runtime is not instrumented, so its synchronisation is invisible: one thread avoids false reports.
OMP_NUM_THREADS=1 OMP_THREAD_LIMIT=1 TSAN_OPTIONS="halt_on_error=1:suppressions=$PWD/tests/tsan.supp" \
  run_tests tsan -L "$($all && echo '^tsan' || echo '^tsan$')" -LE slow -j "$((jobs + 2))"

if $all; then
  step "oneDNN 3: build and test"
  check "oneDNN 3" scripts/test_onednn3.sh

  step "clang-tidy"
  check clang-tidy bash -c 'grep "\.cpp$" | grep -v "^tests/fuzz/\|^examples/" | xargs -n 4 -P "$0" clang-tidy -p build/asan --quiet' "$jobs" \
    < <(sources)
fi

finish
