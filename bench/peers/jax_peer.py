"""JAX on the CPU: one jitted step whose parameters and optimizer state are donated."""

import os

import common

ARGS = common.parse_args()
os.environ["JAX_PLATFORMS"] = "cpu"
# XLA sizes its thread pool from these when it is loaded.
os.environ["NPROC"] = os.environ["PJRT_NPROC"] = str(ARGS.threads)

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402


def convolve(x, weights, padding):
    return lax.conv_general_dilated(
        x, weights, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def max_pool(x):
    """As a reshape and a maximum, which XLA runs faster on the CPU than reduce_window."""
    batch, height, width, channels = x.shape
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).max((2, 4))


def forward_lr(parameters, images):
    weights, bias = parameters
    return images.reshape(len(images), common.PIXELS) @ weights + bias


def forward_lenet(parameters, images):
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = parameters
    x = max_pool(jax.nn.relu(convolve(images, w1, "SAME") + b1))
    x = max_pool(jax.nn.relu(convolve(x, w2, "VALID") + b2))
    x = x.reshape(len(images), 400)
    x = jax.nn.relu(x @ w3 + b3)
    x = jax.nn.relu(x @ w4 + b4)
    return x @ w5 + b5


def apply_sgd(parameters, state, gradients):
    return [p - common.SGD_RATE * g for p, g in zip(parameters, gradients)], state


def apply_adam(parameters, state, gradients):
    means, variances, count = state
    beta1, beta2 = common.ADAM_BETA1, common.ADAM_BETA2
    count += 1
    means = [beta1 * m + (1 - beta1) * g for m, g in zip(means, gradients)]
    variances = [beta2 * v + (1 - beta2) * g * g for v, g in zip(variances, gradients)]
    rate = common.ADAM_RATE * jnp.sqrt(1 - beta2**count) / (1 - beta1**count)
    parameters = [p - rate * m / (jnp.sqrt(v) + common.ADAM_EPSILON)
                  for p, m, v in zip(parameters, means, variances)]
    return parameters, (means, variances, count)


class Peer:
    version = f"jax {jax.__version__}"

    def __init__(self, args):
        self.batch = args.batch
        self.forward = {"lr": forward_lr, "lenet": forward_lenet}[args.model]
        self.apply = {"sgd": apply_sgd, "adam": apply_adam}[args.optimizer]
        self.parameters = [jnp.asarray(value) for value in common.initial_parameters(args.model)]
        self.state = ()
        if args.optimizer == "adam":
            zeros = [[jnp.zeros_like(p) for p in self.parameters] for _ in range(2)]
            self.state = (*zeros, jnp.float32(0))
        self.function = jax.jit(self.update, donate_argnums=(0, 1))

    def update(self, parameters, state, images, labels):
        images = images[..., None]
        if images.dtype == jnp.uint8:
            images = images.astype(jnp.float32) / 255

        def loss_of(parameters):
            scores = jax.nn.log_softmax(self.forward(parameters, images))
            return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()

        loss, gradients = jax.value_and_grad(loss_of)(parameters)
        return *self.apply(parameters, state, gradients), loss

    def train(self, images, labels):
        self.parameters, self.state, loss = self.function(
            self.parameters, self.state, images, labels)
        return loss

    def step(self, images, labels):
        images, labels = jnp.asarray(images), jnp.asarray(labels.astype(np.int32))
        return lambda: self.train(images, labels)

    def epoch(self, images, labels):
        labels = labels.astype(np.int32)
        random = np.random.default_rng(3)

        def run(limit):
            order = random.permutation(len(images))
            steps = min(limit or len(images), len(images) // self.batch)
            for index in range(steps):
                chosen = order[index * self.batch:(index + 1) * self.batch]
                loss = self.train(images[chosen], labels[chosen])
            return steps, loss

        return run

    @staticmethod
    def value(loss):
        return float(loss)


if __name__ == "__main__":
    common.run(Peer(ARGS), ARGS)
