"""The models in JAX: functions of the parameters (channels last) and the images; `drop` zeroes a share of its input."""

import jax
from jax import lax
from jax import numpy as jnp

SIDE = 40  # side of the spatial transformer's images


def linear_regression(parameters, images, _drop):
    weights, bias = parameters
    return flatten(images) @ weights + bias


def lenet(parameters, images, _drop):
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = parameters
    x = halved(conv(images, w1, b1, 1, "SAME"))
    x = halved(conv(x, w2, b2, 1, "VALID"))
    x = jax.nn.relu(flatten(x) @ w3 + b3)
    return jax.nn.relu(x @ w4 + b4) @ w5 + b5


def alexnet(parameters, images, drop):
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5, w6, b6, w7, b7, w8, b8 = parameters
    x = max_pool(conv(images, w1, b1, 4, ((2, 2), (2, 2))))
    x = max_pool(conv(x, w2, b2, 1, "SAME"))
    x = conv(x, w3, b3, 1, "SAME")
    x = max_pool(conv(conv(x, w4, b4, 1, "SAME"), w5, b5, 1, "SAME"))
    x = jax.nn.relu(drop(flatten(x)) @ w6 + b6)
    x = jax.nn.relu(drop(x) @ w7 + b7)
    return x @ w8 + b8


def autoencoder(parameters, images, _drop):
    w1, b1, w2, b2 = parameters
    return jax.nn.softplus(flatten(images) @ w1 + b1) @ w2 + b2


def spatial_transformer(parameters, images, drop):
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5, w6, b6 = parameters
    theta = jnp.tanh(drop(jnp.tanh(flatten(images) @ w1 + b1)) @ w2 + b2)
    x = study_sample(images, theta.reshape(-1, 2, 3))
    x = flatten(conv(conv(x, w3, b3, 2, "SAME"), w4, b4, 2, "SAME"))
    return drop(jax.nn.relu(x @ w5 + b5)) @ w6 + b6


def study_sample(images, theta):
    """Pixel (x + 1) * W / 2, bilinear, with weights from the corners clipped to the image."""
    y, x = jnp.meshgrid(jnp.linspace(-1, 1, SIDE), jnp.linspace(-1, 1, SIDE), indexing="ij")
    points = jnp.stack([x.ravel(), y.ravel(), jnp.ones(SIDE * SIDE)])
    at = (theta @ points + 1) * (SIDE / 2)
    low = jnp.floor(lax.stop_gradient(at))
    high = jnp.clip(low + 1, 0, SIDE - 1)
    low = jnp.clip(low, 0, SIDE - 1)
    wx0, wy0 = (high - at).swapaxes(0, 1)
    wx1, wy1 = (at - low).swapaxes(0, 1)
    x0, y0 = low.astype(jnp.int32).swapaxes(0, 1)
    x1, y1 = high.astype(jnp.int32).swapaxes(0, 1)
    pixels = flatten(images)

    def corner(x, y):
        return jnp.take_along_axis(pixels, y * SIDE + x, axis=1, mode="promise_in_bounds")

    sampled = (wx0 * wy0 * corner(x0, y0) + wx0 * wy1 * corner(x0, y1)
               + wx1 * wy0 * corner(x1, y0) + wx1 * wy1 * corner(x1, y1))
    return sampled.reshape(-1, SIDE, SIDE, 1)


def conv(x, weights, bias, stride, padding):
    product = lax.conv_general_dilated(
        x, weights, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu(product + bias)


def halved(x):
    """Pools by a reshape and a maximum, which XLA runs faster on the CPU than reduce_window."""
    batch, height, width, channels = x.shape
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).max((2, 4))


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "VALID")


def flatten(x):
    return x.reshape(len(x), -1)


FORWARD = {"lr": linear_regression, "lenet": lenet, "alexnet": alexnet, "autoencoder": autoencoder,
           "stn": spatial_transformer}
