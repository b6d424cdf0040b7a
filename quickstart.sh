#!/usr/bin/env bash
# Builds Lockstep, trains LeNet-5 on real data, shows predictions and the cost of distribution. Safe to run again, and
# quick once it is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/packages.sh

usage() {
  cat <<'TEXT'
usage: ./quickstart.sh [--data DIR] [--epochs N]

  --data DIR   folder that holds MNIST (the four idx files, plain or .gz); otherwise $LOCKSTEP_DATA, the cache and the
               public mirrors are tried, and then Fashion-MNIST from its Debian package
  --epochs N   how long to train (default 3)
TEXT
}

epochs=3
data=()
while (($# > 0)); do
  case "$1" in
    --data) data=(--data "${2:?--data needs a folder}"); shift 2 ;;
    --epochs) epochs="${2:?--epochs needs a number}"; shift 2 ;;
    -h | --help) usage; exit 0 ;;
    *) echo "quickstart.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
  esac
done

step() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
[[ -t 1 ]] || step() { printf '\n== %s\n' "$*"; }

step "packages"
install_missing "${build_packages[@]}"
echo "all installed"

step "build"
if [[ -f build/release/build.ninja ]]; then
  cmake build/release > /dev/null
else
  cmake --preset release -DLOCKSTEP_TESTS=OFF -DLOCKSTEP_BENCH=OFF > /dev/null
fi
if [[ -t 1 ]]; then quiet=(); else quiet=(-- --quiet); fi
cmake --build build/release --target lockstep_tool "${quiet[@]}"
echo "build/release/lockstep is up to date"
command -v lockstep > /dev/null || echo "to type \`lockstep\` alone, as in its hints:  export PATH=$(printf %q "$PWD/build/release"):\$PATH"
lockstep=build/release/lockstep

step "data"
# Gives public mirrors half a minute; a machine without internet continues at once.
if timeout 30 "$lockstep" data get mnist "${data[@]}" 2> /dev/null; then
  dataset=mnist
else
  dataset=fashion-mnist
  echo "MNIST cannot be fetched here; using Fashion-MNIST"
  "$lockstep" data get fashion-mnist
  data=()
fi

# Prints a heading and a command as it can be typed, then runs it.
shown() {
  announced "$@"
  shift
  "$@"
}
announced() {
  step "$1"
  shift
  echo "\$ $(typed "$@")"
}
typed() {
  local words
  printf -v words ' %q' "$@"
  echo "${words:1}"
}
newest() { ls -td "runs/$1"-* | head -n 1; }
# Runs `lockstep why ... --against ...` and shows what limited the run, and how it compares; the rest is evidence.
shown_in_short() {
  local text
  announced "$@"
  shift
  text="$("$@")"
  awk -v RS= -v ORS='\n\n' 'NR == 2 || /^against / || after { print; after = /^against / }' <<< "$text"
  echo "... all $(wc -l <<< "$text") lines: $(typed "$@")"
}
# Runs an experiment. Its bar tells what is being trained; without a terminal the line of each finished run is enough.
shown_experiment() {
  announced "$@"
  shift
  if [[ -t 1 ]]; then "$@"; else "$@" | sed -u '/^run [0-9]* of [0-9]*: /d'; fi
}

shown "train LeNet-5" "$lockstep" train lenet --dataset "$dataset" --epochs "$epochs" --name quickstart "${data[@]}"
run="$(newest quickstart)"
shown "evaluate it" "$lockstep" eval "$run"
shown "some predictions" "$lockstep" predict "$run" --test 3
shown "some that it gets wrong" "$lockstep" predict "$run" --test 3 --mistakes

shown "the same on a cluster of processes" \
  "$lockstep" train lenet --dataset "$dataset" --workers 2 --ps 1 --sync --epochs 1 --name cluster "${data[@]}"
cluster="$(newest cluster)"
shown_in_short "what that cost, and why" "$lockstep" why "$cluster" --against "$run"

shown_experiment "an experiment: LR and LeNet, one worker and three, sync and async" \
  "$lockstep" lab run experiments/quickstart.yaml --set "dataset=$dataset" --again --retries 0 "${data[@]}"

train="$(typed "$lockstep" train)"
of_data="$(typed --dataset "$dataset" "${data[@]}")"

# The studies need MNIST. Emulated machines need rights that ordinary users, or root in a container, do not have.
study_line=""
if [[ "$dataset" == mnist ]]; then
  study="$(typed "$lockstep" lab run experiments/study-3.yaml --scale quick "${data[@]}")"
  allowed="$("$lockstep" info | sed -n 's/^emulate *//p')"
  (($(nproc) > 1)) || allowed="no: its nodes need 1.5 cores"
  if [[ "$allowed" == yes ]]; then
    study_line="  a published study, emulated machines   $study"
  else
    study_line="  a published study, as processes        $study --local
                                         # emulated machines: $allowed"
  fi
  study_line+=$'\n'
fi

cat <<TEXT

What to try next:
  all of its 20 epochs                   $train lenet $of_data
  softmax regression, in a second        $train lr $of_data
  layers, arithmetic, memory             $lockstep describe lenet
  three workers, one is killed           $train lenet $of_data --workers 3 &
                                         kill -9 \$(pgrep -P \$! -f task=worker:1)   # training continues, worker:1 restarts
  a run's curves, roles and phases       $lockstep show $cluster
  two runs side by side                  $lockstep compare $run $cluster
  runs and experiments in a browser      $lockstep dash
${study_line}  curves, histograms, pictures, graph    $lockstep tensorboard
  an image of your own                   $lockstep predict $run digit.png
  everything else                        $lockstep --help
TEXT
