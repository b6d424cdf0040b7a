"""TensorFlow on the CPU: one tf.function per step, as a graph or compiled by XLA."""

import tensorflow as tf

import common
import models
import tensorflow_models


class Peer:
    version = f"tensorflow {tf.__version__}"

    def __init__(self, args, parameters):
        self.batch = args.batch
        self.dropout = args.dropout
        self.forward = tensorflow_models.FORWARD[args.model]
        self.loss = self.squares if args.model == "autoencoder" else self.cross_entropy
        self.apply = {"sgd": self.apply_sgd, "adam": self.apply_adam}[args.optimizer]
        self.variables = [tf.Variable(value) for value in models.channels_last(args.model, parameters)]
        self.parameters = sum(variable.shape.num_elements() for variable in self.variables)
        slots = self.variables if args.optimizer == "adam" else []
        self.means = [tf.Variable(tf.zeros_like(p)) for p in slots]
        self.variances = [tf.Variable(tf.zeros_like(p)) for p in slots]
        self.beta1_power = tf.Variable(common.ADAM_BETA1)
        self.beta2_power = tf.Variable(common.ADAM_BETA2)
        self.function = tf.function(self.train, jit_compile=args.variant == "xla", autograph=False)

    @staticmethod
    def cross_entropy(logits, _images, labels):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))

    @staticmethod
    def squares(output, images, _labels):
        return tf.nn.l2_loss(output - tensorflow_models.flatten(images))

    def apply_sgd(self, gradients):
        for parameter, gradient in zip(self.variables, gradients):
            tf.raw_ops.ResourceApplyGradientDescent(
                var=parameter.handle, alpha=common.SGD_RATE, delta=gradient)

    def apply_adam(self, gradients):
        slots = zip(self.variables, self.means, self.variances, gradients)
        for parameter, mean, variance, gradient in slots:
            tf.raw_ops.ResourceApplyAdam(
                var=parameter.handle, m=mean.handle, v=variance.handle,
                beta1_power=self.beta1_power, beta2_power=self.beta2_power, lr=common.ADAM_RATE,
                beta1=common.ADAM_BETA1, beta2=common.ADAM_BETA2, epsilon=common.ADAM_EPSILON,
                grad=gradient)
        self.beta1_power.assign(self.beta1_power * common.ADAM_BETA1)
        self.beta2_power.assign(self.beta2_power * common.ADAM_BETA2)

    def train(self, images, labels):
        if images.dtype == tf.uint8:
            images = tf.cast(images, tf.float32) / 255
        with tf.GradientTape() as tape:
            loss = self.loss(self.forward(self.variables, images, self.dropout), images, labels)
        self.apply(tape.gradient(loss, self.variables))
        return loss

    def step(self, images, labels):
        images, labels = tf.constant(images.transpose(0, 2, 3, 1)), tf.constant(labels)
        # Calling the concrete function skips the signature lookup of every call.
        train = self.function.get_concrete_function(images, labels)
        return lambda: train(images, labels)

    def epoch(self, images, labels):
        data = tf.data.Dataset.from_tensor_slices((images[..., None], labels))
        data = data.shuffle(len(images)).batch(self.batch, drop_remainder=True)
        data = data.prefetch(2).with_options(self.pipeline_options())

        # The loop is part of the graph, so that Python runs once per epoch.
        @tf.function
        def loop(dataset):
            steps, loss = 0, 0.0
            for batch, targets in dataset:
                loss = self.function(batch, targets)
                steps += 1
            return steps, loss

        def run(limit):
            steps, loss = loop(data.take(limit or -1))
            return int(steps), loss

        return run

    @staticmethod
    def pipeline_options():
        """One thread reads ahead; more would compete with the training step."""
        options = tf.data.Options()
        options.autotune.enabled = False
        options.threading.private_threadpool_size = 1
        return options

    @staticmethod
    def value(loss):
        return float(loss.numpy())


def main():
    args = common.parse_args(variants=("graph", "xla"))
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(args.threads)
    common.run(Peer, args)


if __name__ == "__main__":
    main()
