"""The models in TensorFlow: functions of the parameters (channels last) and the images, with the dropout's share."""

import tensorflow as tf

SIDE = 40  # side of the spatial transformer's images


def linear_regression(parameters, images, _dropout):
    return dense(flatten(images), *parameters)


def lenet(parameters, images, _dropout):
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = parameters
    x = tf.nn.max_pool2d(conv(images, w1, b1, 1, "SAME"), 2, 2, "VALID")
    x = tf.nn.max_pool2d(conv(x, w2, b2, 1, "VALID"), 2, 2, "VALID")
    x = tf.nn.relu(dense(flatten(x), w3, b3))
    return dense(tf.nn.relu(dense(x, w4, b4)), w5, b5)


def alexnet(parameters, images, dropout):
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5, w6, b6, w7, b7, w8, b8 = parameters
    x = conv(images, w1, b1, 4, ((0, 0), (2, 2), (2, 2), (0, 0)))
    x = conv(tf.nn.max_pool2d(x, 3, 2, "VALID"), w2, b2, 1, "SAME")
    x = conv(tf.nn.max_pool2d(x, 3, 2, "VALID"), w3, b3, 1, "SAME")
    x = conv(conv(x, w4, b4, 1, "SAME"), w5, b5, 1, "SAME")
    x = flatten(tf.nn.max_pool2d(x, 3, 2, "VALID"))
    x = tf.nn.relu(dense(dropped(x, dropout), w6, b6))
    x = tf.nn.relu(dense(dropped(x, dropout), w7, b7))
    return dense(x, w8, b8)


def autoencoder(parameters, images, _dropout):
    w1, b1, w2, b2 = parameters
    return dense(tf.nn.softplus(dense(flatten(images), w1, b1)), w2, b2)


def spatial_transformer(parameters, images, dropout):
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5, w6, b6 = parameters
    hidden = tf.tanh(dense(flatten(images), w1, b1))
    theta = tf.tanh(dense(dropped(hidden, dropout), w2, b2))
    x = study_sample(images, tf.reshape(theta, (-1, 2, 3)))
    x = flatten(conv(conv(x, w3, b3, 2, "SAME"), w4, b4, 2, "SAME"))
    return dense(dropped(tf.nn.relu(dense(x, w5, b5)), dropout), w6, b6)


def study_sample(images, theta):
    """Pixel (x + 1) * W / 2, bilinear, with weights from the corners clipped to the image."""
    y, x = tf.meshgrid(tf.linspace(-1.0, 1.0, SIDE), tf.linspace(-1.0, 1.0, SIDE), indexing="ij")
    points = tf.stack([tf.reshape(x, [-1]), tf.reshape(y, [-1]), tf.ones(SIDE * SIDE)])
    at = (theta @ points + 1) * (SIDE / 2)
    low = tf.floor(tf.stop_gradient(at))
    high = tf.clip_by_value(low + 1, 0, SIDE - 1)
    low = tf.clip_by_value(low, 0, SIDE - 1)
    (wx0, wy0), (wx1, wy1) = tf.unstack(high - at, axis=1), tf.unstack(at - low, axis=1)
    (x0, y0), (x1, y1) = (tf.unstack(tf.cast(corner, tf.int32), axis=1) for corner in (low, high))
    pixels = flatten(images)

    def corner(x, y):
        return tf.gather(pixels, y * SIDE + x, batch_dims=1)

    sampled = (wx0 * wy0 * corner(x0, y0) + wx0 * wy1 * corner(x0, y1)
               + wx1 * wy0 * corner(x1, y0) + wx1 * wy1 * corner(x1, y1))
    return tf.reshape(sampled, (-1, SIDE, SIDE, 1))


def conv(x, weights, bias, stride, padding):
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, weights, stride, padding), bias))


def dense(x, weights, bias):
    return tf.nn.bias_add(x @ weights, bias)


def dropped(x, share):
    return tf.nn.dropout(x, share) if share else x


def flatten(x):
    count, *rest = x.shape
    return tf.reshape(x, (count, tf.TensorShape(rest).num_elements()))


FORWARD = {"lr": linear_regression, "lenet": lenet, "alexnet": alexnet, "autoencoder": autoencoder,
           "stn": spatial_transformer}
