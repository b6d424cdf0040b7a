#!/usr/bin/env python3
"""Makes the golden losses again: each case of golden_cases.cpp in PyTorch, float32 on the CPU.

    cmake --build build/release --target golden_inputs
    build/peers-venv/bin/python tests/golden/make_golden.py build/release/tests/golden/golden_inputs [CASE...]

Parameters, batches, masks and noise come from golden_inputs; the losses go to tests/golden/losses/CASE.csv.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

LOSSES = pathlib.Path(__file__).parent / "losses"


class Case:
    """The files that golden_inputs wrote for one case."""

    def __init__(self, folder):
        self.folder = folder
        self.facts = json.loads((folder / "case.json").read_text())
        self.options = self.facts["options"]

    def parameters(self):
        values = np.fromfile(self.folder / "parameters.f32", dtype=np.float32)
        result = {}
        for entry in self.facts["parameters"]:
            count = int(np.prod(entry["shape"]))
            part = values[entry["offset"] : entry["offset"] + count].reshape(entry["shape"])
            result[entry["name"]] = torch.tensor(part, requires_grad=True)
        return result

    def images(self, step):
        shape = [self.facts["batch"], *self.facts["image"]]
        return torch.from_numpy(np.fromfile(self.folder / f"images-{step}.f32", dtype=np.float32).reshape(shape))

    def labels(self, step):
        return torch.from_numpy(np.fromfile(self.folder / f"labels-{step}.i32", dtype=np.int32)).long()

    def random(self, step):
        files = [self.folder / f"random-{step}-{k}.f32" for k in range(self.facts["random"])]
        return [torch.from_numpy(np.fromfile(file, dtype=np.float32)) for file in files]


class Net:
    """Layers over the case's parameters, by name; random values are taken in the order the model asks for them."""

    def __init__(self, parameters, random):
        self.p = parameters
        self.random = iter(random)

    def dense(self, x, name):
        return x @ self.p[name + "/weights"] + self.p[name + "/bias"]

    def conv(self, x, name, stride=1, padding=0):
        return F.conv2d(x, self.p[name + "/weights"], self.p[name + "/bias"], stride, padding)

    def same_conv(self, x, name, stride):
        """TensorFlow's SAME padding: an odd row or column goes to the bottom or right."""
        kernel = self.p[name + "/weights"].shape[-1]
        pads = []
        for size in (x.shape[3], x.shape[2]):
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            pads += [total // 2, total - total // 2]
        return self.conv(F.pad(x, pads), name, stride)

    def masked(self, x):
        return x * next(self.random).reshape(x.shape)

    def noise(self, shape):
        return next(self.random).reshape(shape)


def lr(net, x, labels, _):
    return F.cross_entropy(net.dense(x.flatten(1), "softmax"), labels)


def lenet(net, x, labels, options, padding=2):
    activate = torch.tanh if options["activation"] == "tanh" else torch.relu
    pool = F.avg_pool2d if options["pool"] == "avg" else F.max_pool2d
    x = pool(activate(net.conv(x, "conv1", padding=padding)), 2)
    x = pool(activate(net.conv(x, "conv2")), 2).flatten(1)
    x = activate(net.dense(x, "fc1"))
    x = activate(net.dense(x, "fc2"))
    return F.cross_entropy(net.dense(x, "fc3"), labels)


def lenet_valid(net, x, labels, options):
    return lenet(net, x, labels, options, padding=0)


def lrn(x, radius=2, alpha=1e-4, beta=0.75, bias=2.0):
    channels = x.shape[1]
    squares = F.pad(x * x, (0, 0, 0, 0, radius, radius))
    total = sum(squares[:, k : k + channels] for k in range(2 * radius + 1))
    return x / (bias + alpha * total) ** beta


def alexnet(net, x, labels, options):
    normalised = lrn if options["lrn"] == "true" else lambda value: value
    features_only = options["features_only"] == "true"
    x = net.same_conv(x, "conv1", 4) if features_only else net.conv(x, "conv1", 4, 2)
    x = F.max_pool2d(normalised(torch.relu(x)), 3, 2)
    x = F.max_pool2d(normalised(torch.relu(net.conv(x, "conv2", padding=2))), 3, 2)
    for name in ("conv3", "conv4", "conv5"):
        x = torch.relu(net.conv(x, name, padding=1))
    x = F.max_pool2d(x, 3, 2).flatten(1)
    if features_only:
        return 0.5 * (x * x).sum()
    x = torch.relu(net.dense(net.masked(x), "fc1"))
    x = torch.relu(net.dense(net.masked(x), "fc2"))
    return F.cross_entropy(net.dense(x, "fc3"), labels)


def autoencoder(net, images, _, options):
    x = images.flatten(1)
    kind = options["kind"]
    hidden = len(options["hidden"].split("-"))
    seen = x
    if kind == "gaussian":
        seen = x + net.noise(x.shape)
    if kind == "masking":
        seen = net.masked(x)
    if kind == "variational":
        mean, log_variance = net.dense(seen, "mean"), net.dense(seen, "log_variance")
        code = mean + torch.sqrt(torch.exp(log_variance)) * net.noise(mean.shape)
        divergence = (-0.5 * (1 + log_variance - mean**2 - torch.exp(log_variance)).sum(1)).mean()
        out = net.dense(code, "reconstruction")
        return 0.5 * ((out - x) ** 2).sum() + divergence
    for i in range(hidden):
        seen = F.softplus(net.dense(seen, f"encoder{i + 1}"))
    for i in range(hidden - 1):
        seen = F.softplus(net.dense(seen, f"decoder{i + 1}"))
    return 0.5 * ((net.dense(seen, "reconstruction") - x) ** 2).sum()


def study_sample(images, theta):
    """The published sampler: pixel (x + 1) * W / 2, corners clipped, weights from the clipped corners."""
    n, _, height, width = images.shape
    gy, gx = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
    grid = torch.stack([gx.flatten(), gy.flatten(), torch.ones(height * width)])
    xs, ys = (theta.reshape(n, 2, 3) @ grid).unbind(1)
    x, y = (xs + 1) * width / 2, (ys + 1) * height / 2
    x0, y0 = torch.floor(x).long(), torch.floor(y).long()
    x1, y1 = (x0 + 1).clamp(0, width - 1), (y0 + 1).clamp(0, height - 1)
    x0, y0 = x0.clamp(0, width - 1), y0.clamp(0, height - 1)
    flat = images.reshape(n, height * width)

    def at(py, px):
        return flat.gather(1, py * width + px)

    wa, wb = (x1 - x) * (y1 - y), (x1 - x) * (y - y0)
    wc, wd = (x - x0) * (y1 - y), (x - x0) * (y - y0)
    out = wa * at(y0, x0) + wb * at(y1, x0) + wc * at(y0, x1) + wd * at(y1, x1)
    return out.reshape(images.shape)


def stn(net, images, labels, options, large=False):
    hidden = net.masked(torch.tanh(net.dense(images.flatten(1), "localisation/fc1")))
    theta = torch.tanh(net.dense(hidden, "localisation/theta"))
    if options["sampling"] == "study":
        x = study_sample(images, theta)
    else:
        grid = F.affine_grid(theta.reshape(-1, 2, 3), list(images.shape), align_corners=False)
        x = F.grid_sample(images, grid, align_corners=False)
    if large:
        for name in ("conv1", "conv2", "conv3"):
            x = F.max_pool2d(torch.relu(net.conv(x, name, padding=1)), 2)
    else:
        x = torch.relu(net.same_conv(x, "conv1", 2))
        x = torch.relu(net.same_conv(x, "conv2", 2))
    x = torch.relu(net.dense(x.flatten(1), "fc1"))
    return F.cross_entropy(net.dense(net.masked(x), "fc2"), labels)


def stn_large(net, images, labels, options):
    return stn(net, images, labels, options, large=True)


MODELS = {
    "lr": lr,
    "lenet": lenet,
    "lenet-valid": lenet_valid,
    "alexnet": alexnet,
    "autoencoder": autoencoder,
    "autoencoder-large": autoencoder,
    "stn": stn,
    "stn-large": stn_large,
}


def train(case, optimizer):
    parameters = case.parameters()
    method = torch.optim.SGD if optimizer == "sgd" else torch.optim.Adam
    update = method(parameters.values(), lr=case.facts[optimizer + "_rate"])
    model = MODELS[case.facts["model"]]
    losses = []
    for step in range(case.facts["steps"]):
        net = Net(parameters, case.random(step))
        loss = model(net, case.images(step), case.labels(step), case.options)
        update.zero_grad()
        loss.backward()
        update.step()
        losses.append(loss.item())
    return losses


def main():
    inputs = sys.argv[1]
    names = sys.argv[2:] or subprocess.run([inputs, "list"], check=True, capture_output=True, text=True).stdout.split()
    LOSSES.mkdir(exist_ok=True)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([inputs, name, folder], check=True)
            case = Case(pathlib.Path(folder))
            sgd, adam = train(case, "sgd"), train(case, "adam")
        lines = ["step,sgd,adam"] + [f"{i},{a:.9g},{b:.9g}" for i, (a, b) in enumerate(zip(sgd, adam))]
        (LOSSES / f"{name}.csv").write_text("\n".join(lines) + "\n")
        print(f"{name}: sgd {sgd[0]:.6g} -> {sgd[-1]:.6g}, adam {adam[0]:.6g} -> {adam[-1]:.6g}", flush=True)


if __name__ == "__main__":
    main()
