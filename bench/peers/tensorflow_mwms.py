"""One rank of TensorFlow's MultiWorkerMirroredStrategy on the CPU. Rank 0 prints one JSON line.

A custom training loop: gradients are averaged over the ranks by the strategy's collectives (a ring), then applied by
fused update kernels. A chunk of steps is a loop inside one tf.function, which is faster than a call for every step.
"""

import json
import os

import ranks

args = ranks.parse_args(("graph",), {"among": ("1", "2")})
os.environ["TF_CONFIG"] = json.dumps(
    {"cluster": {"worker": args.addresses.split(",")}, "task": {"type": "worker", "index": args.rank}})

import tensorflow as tf  # noqa: E402

import tensorflow_peer  # noqa: E402


class Peer(tensorflow_peer.Peer):
    def train(self, images, labels):
        with tf.GradientTape() as tape:
            loss = self.loss(self.forward(self.variables, images, self.dropout), images, labels)
        gradients = tape.gradient(loss, self.variables)
        self.apply(tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, gradients))
        return loss


def make_strategy():
    ring = tf.distribute.experimental.CommunicationImplementation.RING
    options = tf.distribute.experimental.CommunicationOptions(implementation=ring)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def make_chunk(strategy, peer, images, labels):
    images, labels = tf.constant(images.transpose(0, 2, 3, 1)), tf.constant(labels)

    @tf.function
    def loop(steps):
        loss = 0.0
        for _ in tf.range(steps):
            loss = strategy.run(peer.train, (images, labels))
        return loss

    return lambda steps: peer.value(loop(tf.constant(steps)))


def main():
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(int(args.among))
    tf.random.set_seed(1 + args.rank)
    strategy = make_strategy()
    with strategy.scope():
        peer = Peer(args, ranks.parameters(args))
    measured = ranks.measure(make_chunk(strategy, peer, *ranks.batch(args)), args)
    if args.rank == 0:
        print(json.dumps({**measured, "version": peer.version, "parameters": peer.parameters}), flush=True)


if __name__ == "__main__":
    main()
