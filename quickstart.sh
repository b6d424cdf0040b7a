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

step "lockstep train lenet --dataset $dataset --epochs $epochs"
"$lockstep" train lenet --dataset "$dataset" --epochs "$epochs" --name quickstart "${data[@]}"
run="runs/$(ls -t runs | grep '^quickstart-' | head -n 1)"

step "lockstep eval $run"
"$lockstep" eval "$run"

step "lockstep predict $run --test 6"
"$lockstep" predict "$run" --test 6

step "and some that it gets wrong: lockstep predict $run --test 3 --mistakes"
"$lockstep" predict "$run" --test 3 --mistakes

step "the same on a cluster of processes: lockstep train lenet --workers 2 --ps 1 --sync"
"$lockstep" train lenet --dataset "$dataset" --workers 2 --ps 1 --sync --epochs 1 --name cluster "${data[@]}"

step "what that cost, and why: lockstep why cluster --against $run"
cluster="runs/$(ls -t runs | grep '^cluster-' | head -n 1)"
"$lockstep" show "$cluster"
"$lockstep" why "$cluster" --against "$run"

step "an experiment: LR and LeNet, one worker and three, sync and async (lockstep lab run)"
"$lockstep" lab run experiments/quickstart.yaml --set "dataset=$dataset" --again "${data[@]}"

# Emulated machines need rights that ordinary users, or root in a container, do not have.
study="build/release/lockstep lab run experiments/study-3.yaml --scale quick${data[*]:+ ${data[*]}}"
[[ "$dataset" == mnist ]] || study+=" --set dataset=$dataset"
allowed="$("$lockstep" info | sed -n 's/^emulate *//p')"
if [[ "$allowed" == yes ]]; then
  study_line="a published study, emulated machines   $study"
else
  study_line="a published study, as processes        $study --local
                                         # emulated machines: $allowed"
fi

cat <<TEXT

What to try next:
  train all the way (99 % on MNIST)      build/release/lockstep train lenet --dataset $dataset ${data[*]}
  softmax regression, in a second        build/release/lockstep train lr --dataset $dataset ${data[*]}
  layers, arithmetic, memory             build/release/lockstep describe lenet
  three workers, one is killed           build/release/lockstep train lenet --dataset $dataset ${data[*]} --workers 3 &
                                         pkill -9 -f task=worker:1    # training continues, worker:1 restarts
  two runs side by side                  build/release/lockstep compare $run $cluster
  runs and experiments in a browser      build/release/lockstep dash
  $study_line
  curves, histograms, pictures, graph    build/release/lockstep tensorboard
  an image of your own                   build/release/lockstep predict $run digit.png
  everything else                        build/release/lockstep --help
TEXT
