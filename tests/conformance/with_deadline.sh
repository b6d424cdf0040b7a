#!/bin/sh
# Runs a job with LOCKSTEP_TEST_DEADLINE (seconds). Repeats it with a longer one if that was too short for this machine;
# the start of MPI counts too. Prints the output of the last run.
for deadline in 1 6 30; do
  said=$(LOCKSTEP_TEST_DEADLINE=$deadline "$@" 2>&1)
  case "$said" in *FAILED*) ;; *) break ;; esac
done
printf '%s\n' "$said"
