"""Arguments and images of the scripts in this folder. Images are the idx files of MNIST or Fashion-MNIST, maybe gzipped."""

import argparse
import gzip
import pathlib

import numpy


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder with the four idx files")
    parser.add_argument("--batch", type=int, default=64, help="examples per worker and step")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", help="folder for TensorBoard's event files")
    return parser.parse_args()


def read_idx(folder, name):
    plain = folder / name
    with open(plain, "rb") if plain.exists() else gzip.open(folder / f"{name}.gz") as file:
        content = file.read()
    start = 4 + 4 * content[3]
    shape = numpy.frombuffer(content, ">u4", content[3], 4)
    return numpy.frombuffer(content, numpy.uint8, offset=start).reshape(shape)


def load(folder, part):
    """Returns pixels from 0 to 1, a row per image, and labels. `part` is "train" or "t10k"."""
    pixels = read_idx(folder, f"{part}-images-idx3-ubyte").reshape(-1, 784) / numpy.float32(255)
    return pixels, read_idx(folder, f"{part}-labels-idx1-ubyte").astype(numpy.int64)


def batches(count, args, epoch, rank, size):
    """Returns the places of this worker's batches: the same shuffled order for all workers, a part for each."""
    order = numpy.random.default_rng((args.seed, epoch)).permutation(count)
    steps = count // (args.batch * size)
    return order[: steps * args.batch * size].reshape(steps, size, args.batch)[:, rank]
