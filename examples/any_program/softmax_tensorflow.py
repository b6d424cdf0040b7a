"""Softmax regression with TensorFlow 2's MultiWorkerMirroredStrategy. TF_CONFIG says where its peers are. Worker 0 writes
event files for TensorBoard."""

import json
import os
import time

import tensorflow as tf

import images


def main():
    args = images.arguments(__doc__)
    task = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    size = strategy.num_replicas_in_sync
    pixels, labels = images.load(args.data, "train")
    test_pixels, test_labels = map(tf.constant, images.load(args.data, "t10k"))
    with strategy.scope():
        # Each change is the mean of all workers' changes.
        weights, bias = (tf.Variable(tf.zeros(shape), aggregation=tf.VariableAggregation.MEAN)
                         for shape in ([784, 10], [10]))

    def loss_of(batch, wanted):
        logits = batch @ weights + bias
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(wanted, logits)), logits

    @tf.function
    def train(batch, wanted):
        def replica(batch, wanted):
            with tf.GradientTape() as tape:
                loss, _ = loss_of(batch, wanted)
            for variable, gradient in zip((weights, bias), tape.gradient(loss, (weights, bias))):
                variable.assign_sub(args.lr * gradient)
        strategy.run(replica, (batch, wanted))

    writer = tf.summary.create_file_writer(args.events) if task == 0 and args.events else tf.summary.create_noop_writer()
    step, seconds = 0, 0.0
    for epoch in range(1, args.epochs + 1):
        began = time.monotonic()
        for places in images.batches(len(labels), args, epoch, task, size):
            train(tf.constant(pixels[places]), tf.constant(labels[places]))
            step += 1
        seconds += time.monotonic() - began
        loss, logits = loss_of(test_pixels, test_labels)
        accuracy = tf.reduce_mean(tf.cast(tf.argmax(logits, 1) == test_labels, tf.float32))
        with writer.as_default():
            tf.summary.write("loss", loss, step)
            tf.summary.write("accuracy", accuracy, step)
            tf.summary.write("epoch", float(epoch), step)
    if task == 0:
        print(f"trained on {step * args.batch * size / seconds:.0f} examples per second")


main()
