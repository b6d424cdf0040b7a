"""Parts that the Python peers share: arguments, data, timing, and the JSON line they print.

A peer is made from the arguments and the initial parameters (see models.py) and has five members:

  version                     "name x.y.z"
  parameters                  how many numbers it trains
  step(images, labels)        returns a function that trains once on that batch and returns its loss
  epoch(images, labels)       returns a function of `limit` that trains on the shuffled data, at most
                              `limit` steps of it (all when None), and returns (steps, last loss)
  value(loss)                 waits for a loss and returns it as a float

Images are float32 of shape (n, channels, height, width) for a step, uint8 of (n, 28, 28) for an epoch; labels
are int64.
"""

import argparse
import gzip
import json
import os
import statistics
import time

import numpy as np

import models

CLASSES = 10
SIDE = 28
PIXELS = SIDE * SIDE
SGD_RATE = 0.01
ADAM_RATE = 1e-3
ADAM_BETA1 = 0.9
ADAM_BETA2 = 0.999
ADAM_EPSILON = 1e-8

WARM_UP_SECONDS = 0.5
CHUNK_SECONDS = 0.02
LEAST_CHUNKS = 3
CHECKED_STEPS = 3


def parse_args(variants=("default",), choices=None):
    """`choices` are further options of a peer, each with its values; the first is the default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=models.MODELS, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--optimizer", choices=("sgd", "adam"), required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warm-up", type=int, default=20, help="steps before the measured ones")
    parser.add_argument("--may-rise", action="store_true", help="a loss that does not fall is no failure")
    parser.add_argument("--epoch", action="store_true")
    parser.add_argument("--data", help="folder of the idx files, needed with --epoch")
    parser.add_argument("--check", metavar="FILE", help="start from this file and print the first losses")
    parser.add_argument("--variant", choices=variants, default=variants[0])
    for name, values in (choices or {}).items():
        parser.add_argument(f"--{name}", choices=values, default=values[0])
    args = parser.parse_args()
    if args.epoch and not args.data:
        parser.error("--epoch needs --data")
    args.dropout = 0.0 if args.check else models.MODELS[args.model].dropout
    return args


def read_idx(path):
    with gzip.open(path, "rb") as file:
        data = file.read()
    dimensions = data[3]
    shape = np.frombuffer(data, ">i4", dimensions, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def training_data(folder):
    images = read_idx(os.path.join(folder, "train-images-idx3-ubyte.gz"))
    labels = read_idx(os.path.join(folder, "train-labels-idx1-ubyte.gz"))
    return images, labels.astype(np.int64)


def memory_mb(figure):
    """A figure of this process: VmRSS is the memory held now, VmHWM the peak."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(figure + ":"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def measure_steps(step, value, args):
    first_loss = value(step())
    per_step = warm_up(step, value, args.warm_up)
    chunk = max(1, round(CHUNK_SECONDS / per_step))
    times = []
    end = time.perf_counter() + args.seconds
    while len(times) < LEAST_CHUNKS or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(chunk):
            loss = step()
        last_loss = value(loss)
        times.append((time.perf_counter() - start) / chunk)
    return result(times, chunk * len(times), first_loss, last_loss)


def warm_up(step, value, steps):
    """Runs steps until compilers, caches and thread pools have settled; returns seconds per step."""
    for _ in range(steps - 1):
        value(step())
    count = 0
    start = time.perf_counter()
    while count == 0 or (steps > 1 and time.perf_counter() - start < WARM_UP_SECONDS):
        value(step())
        count += 1
    return (time.perf_counter() - start) / count


def measure_epochs(epoch, value, args):
    first_loss = value(epoch(1)[1])
    value(epoch(args.warm_up)[1])
    times = []
    total = 0
    end = time.perf_counter() + args.seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        steps, loss = epoch(None)
        last_loss = value(loss)
        times.append((time.perf_counter() - start) / steps)
        total += steps
    return result(times, total, first_loss, last_loss)


def result(seconds_per_step, steps, first_loss, last_loss):
    return {"ms_per_step": 1e3 * statistics.median(seconds_per_step), "steps": steps,
            "loss_first": first_loss, "loss_last": last_loss}


def check(make_peer, args):
    images, labels, parameters = models.read_check(args.check, args.model, args.batch)
    peer = make_peer(args, parameters)
    step = peer.step(images, labels)
    return {"losses": [peer.value(step()) for _ in range(CHECKED_STEPS)], "parameters": peer.parameters,
            "version": peer.version}


def measure(make_peer, args):
    memory_before = memory_mb("VmRSS")
    peer = make_peer(args, models.initial_parameters(args.model))
    if args.epoch:
        measured = measure_epochs(peer.epoch(*training_data(args.data)), peer.value, args)
    else:
        measured = measure_steps(peer.step(*models.make_batch(args.model, args.batch)), peer.value, args)
    return {**measured, "memory_mb": memory_mb("VmHWM"), "memory_before_mb": memory_before,
            "parameters": peer.parameters, "version": peer.version}


def run(make_peer, args):
    print(json.dumps(check(make_peer, args) if args.check else measure(make_peer, args)), flush=True)
