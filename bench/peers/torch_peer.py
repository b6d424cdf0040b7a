"""PyTorch on the CPU: eager, or with torch.compile."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

import common


def build_model(name):
    if name == "lr":
        return nn.Sequential(nn.Flatten(), nn.Linear(common.PIXELS, common.CLASSES))
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, common.CLASSES))
    return model.to(memory_format=torch.channels_last)


class Peer:
    version = f"torch {torch.__version__.split('+')[0]}"

    def __init__(self, args):
        compiled = args.variant == "compile"
        self.batch = args.batch
        self.model = build_model(args.model)
        self.optimizer = self.build_optimizer(args.optimizer, fused=not compiled)
        self.update = self.optimizer.step
        if compiled:
            self.loss = torch.compile(self.loss)
            self.update = torch.compile(self.optimizer.step)

    def build_optimizer(self, name, fused):
        if name == "sgd":
            return torch.optim.SGD(self.model.parameters(), common.SGD_RATE)
        return torch.optim.Adam(self.model.parameters(), common.ADAM_RATE, fused=fused)

    def loss(self, images, labels):
        return functional.cross_entropy(self.model(images), labels)

    def train(self, images, labels):
        loss = self.loss(images, labels)
        loss.backward()
        self.update()
        self.optimizer.zero_grad(set_to_none=True)
        return loss

    def step(self, images, labels):
        images, labels = torch.from_numpy(images).unsqueeze(1), torch.from_numpy(labels)
        return lambda: self.train(images, labels)

    def epoch(self, images, labels):
        images = torch.from_numpy(images.copy()).unsqueeze(1).float() / 255
        dataset = TensorDataset(images, torch.from_numpy(labels))
        # One indexing operation per batch, instead of one per example and a stack.
        sampler = BatchSampler(RandomSampler(dataset), self.batch, drop_last=True)
        loader = DataLoader(dataset, sampler=sampler, batch_size=None)

        def run(limit):
            for steps, (batch, targets) in enumerate(loader, 1):
                loss = self.train(batch, targets)
                if steps == limit:
                    break
            return steps, loss

        return run

    @staticmethod
    def value(loss):
        return loss.item()


def main():
    args = common.parse_args(variants=("eager", "compile"))
    # Before the thread pool starts, whose threads inherit it.
    torch.set_flush_denormal(True)
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    common.run(Peer(args), args)


if __name__ == "__main__":
    main()
