"""TensorFlow on the CPU: one tf.function per step, as a graph or compiled by XLA."""

import tensorflow as tf

import common


class Peer:
    version = f"tensorflow {tf.__version__}"

    def __init__(self, args):
        self.batch = args.batch
        self.forward = {"lr": self.forward_lr, "lenet": self.forward_lenet}[args.model]
        self.apply = {"sgd": self.apply_sgd, "adam": self.apply_adam}[args.optimizer]
        self.parameters = [tf.Variable(value) for value in common.initial_parameters(args.model)]
        self.means = [tf.Variable(tf.zeros_like(p)) for p in self.parameters]
        self.variances = [tf.Variable(tf.zeros_like(p)) for p in self.parameters]
        self.beta1_power = tf.Variable(common.ADAM_BETA1)
        self.beta2_power = tf.Variable(common.ADAM_BETA2)
        self.function = tf.function(self.train, jit_compile=args.variant == "xla", autograph=False)

    def forward_lr(self, images):
        weights, bias = self.parameters
        return tf.nn.bias_add(tf.reshape(images, (self.batch, common.PIXELS)) @ weights, bias)

    def forward_lenet(self, images):
        w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = self.parameters
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, w1, 1, "SAME"), b1))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w2, 1, "VALID"), b2))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.reshape(x, (self.batch, 400))
        x = tf.nn.relu(tf.nn.bias_add(x @ w3, b3))
        x = tf.nn.relu(tf.nn.bias_add(x @ w4, b4))
        return tf.nn.bias_add(x @ w5, b5)

    def apply_sgd(self, gradients):
        for parameter, gradient in zip(self.parameters, gradients):
            tf.raw_ops.ResourceApplyGradientDescent(
                var=parameter.handle, alpha=common.SGD_RATE, delta=gradient)

    def apply_adam(self, gradients):
        slots = zip(self.parameters, self.means, self.variances, gradients)
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
            logits = self.forward(images)
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        self.apply(tape.gradient(loss, self.parameters))
        return loss

    def step(self, images, labels):
        images, labels = tf.constant(images[..., None]), tf.constant(labels)
        # Calling the concrete function skips the signature lookup of every call.
        train = self.function.get_concrete_function(images, labels)
        return lambda: train(images, labels)

    def epoch(self, images, labels):
        data = tf.data.Dataset.from_tensor_slices((images[..., None], labels))
        data = data.shuffle(len(images)).batch(self.batch, drop_remainder=True)
        data = data.prefetch(2).with_options(self.pipeline_options())

        # The loop is part of the graph, so that Python is entered once an epoch.
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
    common.run(Peer(args), args)


if __name__ == "__main__":
    main()
