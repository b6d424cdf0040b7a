"""JAX on the CPU: one jitted step whose parameters and optimizer state are donated."""

import os

import common

ARGS = common.parse_args()
os.environ["JAX_PLATFORMS"] = "cpu"
# XLA reads the size of its thread pool from these at load time.
os.environ["NPROC"] = os.environ["PJRT_NPROC"] = str(ARGS.threads)

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax import numpy as jnp  # noqa: E402

import jax_models  # noqa: E402
import models  # noqa: E402


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


def cross_entropy(output, _images, labels):
    scores = jax.nn.log_softmax(output)
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


def squares(output, images, _labels):
    return 0.5 * jnp.sum(jnp.square(output - jax_models.flatten(images)))


class Peer:
    version = f"jax {jax.__version__}"

    def __init__(self, args, parameters):
        self.batch = args.batch
        self.dropout = args.dropout
        self.forward = jax_models.FORWARD[args.model]
        self.loss = squares if args.model == "autoencoder" else cross_entropy
        self.apply = {"sgd": apply_sgd, "adam": apply_adam}[args.optimizer]
        self.values = [jnp.asarray(value) for value in models.channels_last(args.model, parameters)]
        self.parameters = sum(value.size for value in self.values)
        self.state = ()
        if args.optimizer == "adam":
            zeros = [[jnp.zeros_like(p) for p in self.values] for _ in range(2)]
            self.state = (*zeros, jnp.float32(0))
        self.key = jax.random.key(1)
        self.function = jax.jit(self.update, donate_argnums=(0, 1, 2))

    def update(self, values, state, key, images, labels):
        if images.dtype == jnp.uint8:
            images = images[..., None].astype(jnp.float32) / 255
        key, *unused = jax.random.split(key, 3)

        def drop(x):
            kept = jax.random.bernoulli(unused.pop(), 1 - self.dropout, x.shape)
            return jnp.where(kept, x / (1 - self.dropout), 0)

        def loss_of(values):
            output = self.forward(values, images, drop if self.dropout else lambda x: x)
            return self.loss(output, images, labels)

        loss, gradients = jax.value_and_grad(loss_of)(values)
        return *self.apply(values, state, gradients), key, loss

    def train(self, images, labels):
        self.values, self.state, self.key, loss = self.function(
            self.values, self.state, self.key, images, labels)
        return loss

    def step(self, images, labels):
        images = jnp.asarray(images.transpose(0, 2, 3, 1))
        labels = jnp.asarray(labels.astype(np.int32))
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
    common.run(Peer, ARGS)
