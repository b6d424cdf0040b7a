"""The models as numbers: shapes, initial parameters, batches. All peers take theirs from here.

Parameters are listed in Lockstep's order and layouts: a convolution's weights as (out, in, height, width), a dense
layer's as (in, out), each followed by its bias. Batches are (n, channels, height, width).
"""

import dataclasses
import math

import numpy as np

AFFINE_IDENTITY = (1, 0, 0, 0, 1, 0)


@dataclasses.dataclass(frozen=True)
class Model:
    image: tuple
    classes: int
    shapes: tuple
    dropout: float = 0.0
    # The dense weights after the flattening of (channels, height, width): their place, and that shape.
    flattened: tuple | None = None
    zero: tuple = ()  # weights that start at zero
    images: str = "prototypes"  # or "standard", or "noise"


def with_biases(*weights):
    return tuple(shape for weight in weights
                 for shape in (weight, (weight[0] if len(weight) == 4 else weight[1],)))


MODELS = {
    "lr": Model((1, 28, 28), 10, with_biases((784, 10)), zero=(0,)),
    "lenet": Model((1, 28, 28), 10, with_biases(
        (6, 1, 5, 5), (16, 6, 5, 5), (400, 120), (120, 84), (84, 10)), flattened=(4, (16, 5, 5))),
    "alexnet": Model((3, 224, 224), 1000, with_biases(
        (64, 3, 11, 11), (192, 64, 5, 5), (384, 192, 3, 3), (256, 384, 3, 3), (256, 256, 3, 3),
        (9216, 4096), (4096, 4096), (4096, 1000)), dropout=0.5, flattened=(10, (256, 6, 6)), images="noise"),
    "autoencoder": Model((1, 28, 28), 10, with_biases((784, 200), (200, 784)), zero=(2,), images="standard"),
    "stn": Model((1, 40, 40), 10, with_biases(
        (1600, 20), (20, 6), (16, 1, 3, 3), (16, 16, 3, 3), (1600, 1024), (1024, 10)),
        dropout=0.2, flattened=(8, (16, 10, 10))),
}
THETA_BIAS = {"stn": 3}


def initial_parameters(name):
    """Xavier uniform weights and zero biases, unless the model says otherwise."""
    model = MODELS[name]
    random = np.random.default_rng(2)
    parameters = []
    for place, shape in enumerate(model.shapes):
        if len(shape) == 1 or place in model.zero:
            parameters.append(np.zeros(shape, np.float32))
            continue
        taps = math.prod(shape[2:])
        bound = math.sqrt(6 / ((shape[0] + shape[1]) * taps))
        parameters.append((random.random(shape, np.float32) * 2 - 1) * np.float32(bound))
    if name in THETA_BIAS:
        parameters[THETA_BIAS[name]][:] = AFFINE_IDENTITY
    return parameters


def channels_last(name, parameters):
    """Converts parameters for tensors of (n, height, width, channels): convolutions as (height, width, in, out)."""
    model = MODELS[name]
    result = [p.transpose(2, 3, 1, 0) if p.ndim == 4 else p for p in parameters]
    if model.flattened:
        place, shape = model.flattened
        rows = parameters[place].reshape(*shape, -1).transpose(1, 2, 0, 3)
        result[place] = rows.reshape(parameters[place].shape)
    return [np.ascontiguousarray(p) for p in result]


def make_batch(name, count):
    """Returns learnable images, ten prototypes under noise; for AlexNet, noise alone."""
    model = MODELS[name]
    random = np.random.default_rng(1)
    shape = (count, *model.image)
    if model.images == "noise":
        images = random.standard_normal(shape, np.float32)
        images *= np.float32(0.1)
        return images, random.integers(0, model.classes, count)
    labels = np.arange(count) % model.classes
    prototypes = random.random((model.classes, *model.image))
    images = (0.5 * (prototypes[labels] + random.random(shape))).astype(np.float32)
    if model.images == "standard":  # the mean of two uniform numbers has the variance 1/24
        images = (images - np.float32(0.5)) * np.float32(math.sqrt(24))
    return images, labels


def read_check(path, name, count):
    """Reads the batch and parameters that step_time --check wrote."""
    model = MODELS[name]
    with open(path, "rb") as file:
        images = np.fromfile(file, np.float32, count * math.prod(model.image)).reshape(count, *model.image)
        labels = np.fromfile(file, np.int32, count).astype(np.int64)
        parameters = [np.fromfile(file, np.float32, math.prod(shape)).reshape(shape) for shape in model.shapes]
    return images, labels, parameters
