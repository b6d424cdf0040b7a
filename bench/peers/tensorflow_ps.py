"""One role of TensorFlow's parameter-server training: between-graph, with MonitoredTrainingSession.

A ps serves until it is killed, as server.join() does. A worker trains until the global step reaches --steps and prints
one JSON line: its share of the steps, and the rate of global steps without the start.
"""

import argparse
import json
import os
import time

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf  # noqa: E402

import common  # noqa: E402
import models  # noqa: E402
import tensorflow_models  # noqa: E402

v1 = tf.compat.v1
ADAM = {"beta1": common.ADAM_BETA1, "beta2": common.ADAM_BETA2, "epsilon": common.ADAM_EPSILON}


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--role", required=True, help="ps:0, worker:0, ...")
    parser.add_argument("--ps", required=True, help="host:port,...")
    parser.add_argument("--workers", required=True, help="host:port,...")
    parser.add_argument("--model", choices=("lr", "lenet"), required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True, help="global steps")
    parser.add_argument("--warm-up", type=int, default=100, help="steps of this worker before the measured ones")
    parser.add_argument("--sync", action="store_true", help="SyncReplicasOptimizer")
    parser.add_argument("--own-count", action="store_true",
                        help="one worker: count steps here, which saves fetching the global step each time")
    parser.add_argument("--feed", choices=("dict", "dataset"), default="dict")
    parser.add_argument("--threads", type=int, default=0, help="for operations within and among each other; 0: its own")
    parser.add_argument("--data", required=True)
    return parser.parse_args()


def initial(shape):
    """Biases start at zero, weights as in models.py: Xavier, but softmax regression at zero."""
    fan = int(np.prod(shape[:-2], dtype=np.int64)) * (shape[-2] + shape[-1]) if len(shape) > 1 else 0
    limit = np.sqrt(6.0 / fan) if fan else 0.0
    return np.random.uniform(-limit, limit, shape).astype(np.float32)


def shapes(model):
    if model == "lr":
        return [(784, 10), (10,)]
    return [(5, 5, 1, 6), (6,), (5, 5, 6, 16), (16,), (400, 120), (120,), (120, 84), (84,), (84, 10), (10,)]


def make_variables(model):
    zeros = model == "lr"
    return [v1.get_variable(f"v{i}", initializer=np.zeros(shape, np.float32) if zeros else initial(shape))
            for i, shape in enumerate(shapes(model))]


def read_data(args):
    images, labels = common.training_data(args.data)
    return (images.reshape(-1, 28, 28, 1) / np.float32(255)), labels.astype(np.int32)


class DictFeed:
    """Batches cut from shuffled arrays in memory."""

    def __init__(self, args):
        self.images, self.labels = read_data(args)
        self.batch = args.batch
        self.x = v1.placeholder(tf.float32, (args.batch, 28, 28, 1))
        self.y = v1.placeholder(tf.int32, (args.batch,))
        self.at = len(self.labels)

    def next(self):
        if self.at + self.batch > len(self.labels):
            order = np.random.permutation(len(self.labels))
            self.images, self.labels, self.at = self.images[order], self.labels[order], 0
        part = slice(self.at, self.at + self.batch)
        self.at += self.batch
        return {self.x: self.images[part], self.y: self.labels[part]}


class DatasetFeed:
    """tf.data inside the graph, shuffled and prefetched."""

    def __init__(self, args):
        images, labels = read_data(args)
        data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(labels))
        data = data.batch(args.batch, drop_remainder=True).repeat().prefetch(8)
        self.iterator = v1.data.make_initializable_iterator(data)
        v1.add_to_collection(v1.GraphKeys.LOCAL_INIT_OP, self.iterator.initializer)
        self.x, self.y = self.iterator.get_next()

    def next(self):
        return None


def make_optimizer(args, workers):
    if args.model == "lr":
        optimizer = v1.train.GradientDescentOptimizer(common.SGD_RATE)
    else:
        optimizer = v1.train.AdamOptimizer(common.ADAM_RATE, **ADAM)
    if args.sync:
        optimizer = v1.train.SyncReplicasOptimizer(optimizer, workers, total_num_replicas=workers)
    return optimizer


def session_config(threads):
    if not threads:
        return v1.ConfigProto()
    return v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)


def train(args, server, cluster, index):
    chief = index == 0
    with v1.device(v1.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)):
        global_step = v1.train.get_or_create_global_step()
        variables = make_variables(args.model)
    with v1.device(f"/job:worker/task:{index}/cpu:0"):
        feed = (DictFeed if args.feed == "dict" else DatasetFeed)(args)
    with v1.device(v1.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)):
        logits = tensorflow_models.FORWARD[args.model](variables, feed.x, 0.0)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=feed.y, logits=logits)
        loss = tf.reduce_mean(losses)
        optimizer = make_optimizer(args, len(cluster["worker"]))
        update = optimizer.minimize(loss, global_step=global_step)
    hooks = [] if args.own_count else [v1.train.StopAtStepHook(last_step=args.steps)]
    if args.sync:
        hooks.append(optimizer.make_session_run_hook(chief))
    with v1.train.MonitoredTrainingSession(master=server.target, is_chief=chief, hooks=hooks,
                                           config=session_config(args.threads), log_step_count_steps=None) as session:
        measured = (count_own if args.own_count else follow_global)(args, session, feed, update, global_step, loss)
    return {**measured, "version": tf.__version__, "parameters": int(sum(np.prod(s) for s in shapes(args.model)))}


def count_own(args, session, feed, update, global_step, loss):
    for _ in range(args.warm_up):
        session.run(update, feed_dict=feed.next())
    start = time.perf_counter()
    for _ in range(args.steps - args.warm_up):
        session.run(update, feed_dict=feed.next())
    seconds = time.perf_counter() - start
    step, value = session.run([global_step, loss], feed_dict=feed.next())
    return figures(args.steps, step, args.steps - args.warm_up, seconds, value)


def follow_global(args, session, feed, update, global_step, loss):
    local, begun, began_at, ended, step, value = 0, 0.0, 0, 0.0, 0, 0.0
    while not session.should_stop():
        step, value, _ = session.run([global_step, loss, update], feed_dict=feed.next())
        local += 1
        ended = time.perf_counter()
        if local == args.warm_up:
            begun, began_at = ended, step
    return figures(local, step, step - began_at if begun else 0, ended - begun, value)


def figures(local, step, measured, seconds, loss):
    return {"steps": int(local), "global_steps": int(step), "loss": float(loss),
            "global_steps_per_s": measured / seconds if measured else 0.0, "measured_s": seconds if measured else 0.0}


def main():
    args = parse_args()
    assert args.model in models.MODELS
    v1.disable_eager_execution()
    v1.disable_resource_variables()
    cluster = {"ps": args.ps.split(","), "worker": args.workers.split(",")}
    job, index = args.role.split(":")
    server = v1.train.Server(tf.train.ClusterSpec(cluster), job_name=job, task_index=int(index),
                             config=session_config(args.threads))
    if job == "ps":
        server.join()
    print(json.dumps(train(args, server, cluster, int(index))), flush=True)


if __name__ == "__main__":
    main()
