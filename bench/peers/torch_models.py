"""The models in PyTorch, each a module from images to its output, with the parameters in models.py's order."""

import torch
from torch import nn
from torch.nn import functional

import common


def linear_regression(_args):
    return nn.Sequential(nn.Flatten(), nn.Linear(common.PIXELS, common.CLASSES))


def lenet(_args):
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, common.CLASSES))


def alexnet(args):
    def relu():
        return nn.ReLU(inplace=True)

    return nn.Sequential(
        nn.Conv2d(3, 64, 11, stride=4, padding=2), relu(), nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, padding=2), relu(), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1), relu(),
        nn.Conv2d(384, 256, 3, padding=1), relu(),
        nn.Conv2d(256, 256, 3, padding=1), relu(), nn.MaxPool2d(3, 2), nn.Flatten(),
        nn.Dropout(args.dropout), nn.Linear(9216, 4096), relu(),
        nn.Dropout(args.dropout), nn.Linear(4096, 4096), relu(), nn.Linear(4096, 1000))


def autoencoder(_args):
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.Softplus(), nn.Linear(200, 784))


class SpatialTransformer(nn.Module):
    SIDE = 40

    def __init__(self, args):
        super().__init__()
        self.localise = nn.Sequential(
            nn.Flatten(), nn.Linear(self.SIDE**2, 20), nn.Tanh(), nn.Dropout(args.dropout),
            nn.Linear(20, 6), nn.Tanh())
        # TensorFlow's SAME padding of a 3x3 window with stride 2 on an even image: one row below, one column right.
        same = nn.ZeroPad2d((0, 1, 0, 1))
        self.classify = nn.Sequential(
            same, nn.Conv2d(1, 16, 3, stride=2), nn.ReLU(), same, nn.Conv2d(16, 16, 3, stride=2), nn.ReLU(),
            nn.Flatten(), nn.Linear(1600, 1024), nn.ReLU(), nn.Dropout(args.dropout), nn.Linear(1024, 10))
        self.sample = {"gather": self.gather_sample, "grid": self.grid_sample}[args.sampler]
        line = torch.linspace(-1, 1, self.SIDE)
        y, x = torch.meshgrid(line, line, indexing="ij")
        self.register_buffer("points", torch.stack([x.flatten(), y.flatten(), torch.ones(self.SIDE**2)]))

    def gather_sample(self, images, theta):
        """The study's convention: pixel (x + 1) * W / 2, weights from the corners clipped to the image."""
        side = self.SIDE
        at = (theta @ self.points + 1) * (side / 2)
        low = at.detach().floor()
        high = (low + 1).clamp(0, side - 1)
        low = low.clamp(0, side - 1)
        (wx0, wy0), (wx1, wy1) = (high - at).unbind(1), (at - low).unbind(1)
        (x0, y0), (x1, y1) = low.long().unbind(1), high.long().unbind(1)
        pixels = images.flatten(1)

        def corner(x, y):
            return pixels.gather(1, y * side + x)

        sampled = (wx0 * wy0 * corner(x0, y0) + wx0 * wy1 * corner(x0, y1)
                   + wx1 * wy0 * corner(x1, y0) + wx1 * wy1 * corner(x1, y1))
        return sampled.view_as(images)

    def grid_sample(self, images, theta):
        """PyTorch's own convention and kernels: another sampler, the same amount of work."""
        grid = functional.affine_grid(theta, images.shape, align_corners=False)
        return functional.grid_sample(images, grid, align_corners=False)

    def forward(self, images):
        theta = self.localise(images).view(-1, 2, 3)
        return self.classify(self.sample(images, theta))


BUILDERS = {"lr": linear_regression, "lenet": lenet, "alexnet": alexnet, "autoencoder": autoencoder,
            "stn": SpatialTransformer}


def build(args, parameters):
    model = BUILDERS[args.model](args)
    with torch.no_grad():
        for own, value in zip(model.parameters(), parameters, strict=True):
            own.copy_(torch.from_numpy(value.T if value.ndim == 2 else value))
    return model.to(memory_format=torch.channels_last) if args.layout == "last" else model
