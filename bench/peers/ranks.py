"""Parts that the peers with several ranks share: arguments, each rank's batch, and timing.

A peer gives a function of a number of steps that trains so often on its batch and returns the last loss. Every rank
makes the same number of steps, so that nobody has to agree on an end.
"""

import argparse
import time

import numpy as np

import models


def parse_args(variants, choices=None):
    """`choices` are further options of a peer, each with its values; the first is the default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--addresses", required=True, help="host:port of each rank, with commas")
    parser.add_argument("--model", choices=models.MODELS, required=True)
    parser.add_argument("--batch", type=int, required=True, help="of each rank")
    parser.add_argument("--optimizer", choices=("sgd", "adam"), required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warm-up", type=int, required=True, help="steps that are not measured")
    parser.add_argument("--chunk", type=int, required=True, help="steps that are timed together")
    parser.add_argument("--chunks", type=int, required=True)
    parser.add_argument("--variant", choices=variants, default=variants[0])
    for name, values in (choices or {}).items():
        parser.add_argument(f"--{name}", choices=values, default=values[0])
    args = parser.parse_args()
    args.dropout = models.MODELS[args.model].dropout
    return args


def count(args):
    return len(args.addresses.split(","))


def parameters(args):
    return models.initial_parameters(args.model)


def batch(args):
    """Returns the rank's part of a batch for all ranks."""
    images, labels = models.make_batch(args.model, args.batch * count(args))
    part = slice(args.rank * args.batch, (args.rank + 1) * args.batch)
    return np.ascontiguousarray(images[part]), np.ascontiguousarray(labels[part])


def measure(chunk, args):
    first = chunk(1)
    left = args.warm_up - 1
    while left > 0:
        last = chunk(min(left, args.chunk))
        left -= args.chunk
    times = []
    for _ in range(args.chunks):
        start = time.perf_counter()
        last = chunk(args.chunk)
        times.append(1e3 * (time.perf_counter() - start) / args.chunk)
    return {"ms": times, "loss_first": first, "loss_last": last}
