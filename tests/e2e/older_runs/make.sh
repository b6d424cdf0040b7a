#!/bin/bash
# make.sh PROGRAM ARCHIVE: makes the runs of README.md with this build of lockstep and packs them.
# Run it with a build from before a change of formats; later builds are tested with the archive.
set -euo pipefail
program=$(realpath "$1")
archive=$(realpath -m "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > tiny.yaml <<'MODEL'
name: tiny
description: a small model with dropout, whose runs are small files
image: [1, 28, 28]
layers:
  - avg_pool: 4
  - flatten
  - dense: 12
  - tanh
  - dropout: 0.25
  - dense: $classes
MODEL
common="--dataset synthetic --train-limit 400 --test-limit 100 --batch 20 --threads 1 --optimizer adam --lr 0.003
  --seed 3 --summary-every never --monitor-every 0 --eval-batch 100 --quiet"

# One process: trained for an epoch, resumed for another.
"$program" train tiny.yaml $common --log-every 10 --epochs 1 --run-dir one
"$program" train --resume one --epochs 2 --quiet
# Two workers by all-reduce.
"$program" train tiny.yaml $common --log-every 10 --epochs 2 --workers 2 --strategy allreduce --run-dir all-reduce
# Two workers and a parameter server, killed after a checkpoint: the server's state is newer than the checkpoint.
"$program" train tiny.yaml $common --log-every 100 --epochs 0 --steps 800 --steps-per-epoch 200 --checkpoint-every 100 \
  --workers 2 --ps 1 --durability machine --run-dir servers &
launcher=$!
while [ ! -e servers/checkpoints/step-000000300.ckpt ]; do sleep 0.005; done
kill -9 $launcher
wait $launcher || true
sleep 2
test -e servers/ps-0/state

# How the same build resumes them.
mkdir expected
cp -r one all-reduce servers "$work/expected"
cp tiny.yaml expected
(
  cd expected
  "$program" train --resume one --epochs 4 --quiet
  "$program" train --resume all-reduce --epochs 4 --quiet
  "$program" train --resume servers | tee servers.txt
  grep -q 'ps:0 is back at step [0-9]* with all' servers.txt
  for run in one all-reduce servers; do
    cp "$(ls $run/checkpoints/*.ckpt | tail -n 1)" $run.ckpt
    cp $run/steps.csv $run.steps.csv
    cp $run/evals.csv $run.evals.csv
    rm -r $run
  done
  rm servers.txt tiny.yaml
  "$program" info --json > info.json
)
tar -c --sparse --owner=0 --group=0 --sort=name . | gzip -9 > "$archive"
ls -l "$archive"
