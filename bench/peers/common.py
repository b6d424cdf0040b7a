"""What the Python peers share: arguments, data, timing, and the JSON line they print.

A peer is an object with four members:

  version                     "name x.y.z"
  step(images, labels)        returns a function that trains once on that batch and returns its loss
  epoch(images, labels)       returns a function of `limit` that trains on the shuffled data, at most
                              `limit` steps of it (all when None), and returns (steps, last loss)
  value(loss)                 waits for a loss and returns it as a float

Images are float32 in [0, 1] of shape (n, 28, 28) for a step, uint8 for an epoch; labels are int64.
"""

import argparse
import gzip
import json
import os
import statistics
import time

import numpy as np

CLASSES = 10
SIDE = 28
PIXELS = SIDE * SIDE
SGD_RATE = 0.01
ADAM_RATE = 1e-3
ADAM_BETA1 = 0.9
ADAM_BETA2 = 0.999
ADAM_EPSILON = 1e-8

WARM_UP_STEPS = 20
WARM_UP_SECONDS = 0.5
CHUNK_SECONDS = 0.02


def parse_args(variants=("default",)):
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=("lr", "lenet"), required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--optimizer", choices=("sgd", "adam"), required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--epoch", action="store_true")
    parser.add_argument("--data", help="folder of the idx files, needed with --epoch")
    parser.add_argument("--variant", choices=variants, default=variants[0])
    args = parser.parse_args()
    if args.epoch and not args.data:
        parser.error("--epoch needs --data")
    return args


def synthetic_batch(batch):
    """A learnable batch: ten prototypes under noise."""
    random = np.random.default_rng(1)
    labels = np.arange(batch) % CLASSES
    prototypes = random.random((CLASSES, SIDE, SIDE))
    noise = random.random((batch, SIDE, SIDE))
    return (0.5 * (prototypes[labels] + noise)).astype(np.float32), labels.astype(np.int64)


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


def lenet_shapes():
    """Weights (convolutions as height, width, in, out) and biases, in the order they are used."""
    return [(5, 5, 1, 6), (6,), (5, 5, 6, 16), (16,), (400, 120), (120,), (120, 84), (84,),
            (84, CLASSES), (CLASSES,)]


def initial_parameters(model):
    """Uniform weights within 1/sqrt(fan in), zero biases; softmax regression starts at zero."""
    if model == "lr":
        return [np.zeros((PIXELS, CLASSES), np.float32), np.zeros(CLASSES, np.float32)]
    random = np.random.default_rng(2)
    parameters = []
    for shape in lenet_shapes():
        bound = 0.0 if len(shape) == 1 else 1 / np.sqrt(np.prod(shape[:-1]))
        parameters.append(random.uniform(-bound, bound, shape).astype(np.float32))
    return parameters


def measure_steps(step, value, seconds):
    first_loss = value(step())
    per_step = warm_up(step, value)
    chunk = max(1, round(CHUNK_SECONDS / per_step))
    times = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(chunk):
            loss = step()
        last_loss = value(loss)
        times.append((time.perf_counter() - start) / chunk)
    return result(times, chunk * len(times), first_loss, last_loss)


def warm_up(step, value):
    """Runs steps until compilers, caches and thread pools have settled; returns seconds per step."""
    for _ in range(WARM_UP_STEPS):
        loss = step()
    value(loss)
    count = 0
    start = time.perf_counter()
    while count == 0 or time.perf_counter() - start < WARM_UP_SECONDS:
        value(step())
        count += 1
    return (time.perf_counter() - start) / count


def measure_epochs(epoch, value, seconds):
    first_loss = value(epoch(1)[1])
    value(epoch(WARM_UP_STEPS)[1])
    times = []
    total = 0
    end = time.perf_counter() + seconds
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


def run(peer, args):
    if args.epoch:
        measured = measure_epochs(peer.epoch(*training_data(args.data)), peer.value, args.seconds)
    else:
        measured = measure_steps(peer.step(*synthetic_batch(args.batch)), peer.value, args.seconds)
    print(json.dumps({**measured, "version": peer.version}), flush=True)
