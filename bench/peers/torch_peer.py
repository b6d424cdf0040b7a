"""PyTorch on the CPU: eager, or with torch.compile; in float32, or bfloat16 by autocast."""

import contextlib

import torch
from torch.nn import functional
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

import common
import torch_models


class Peer:
    version = f"torch {torch.__version__.split('+')[0]}"

    def __init__(self, args, parameters):
        compiled = args.variant == "compile"
        self.batch = args.batch
        self.bf16 = args.precision == "bf16"
        self.layout = torch.channels_last if args.layout == "last" else torch.contiguous_format
        self.model = torch_models.build(args, parameters)
        self.parameters = sum(parameter.numel() for parameter in self.model.parameters())
        self.optimizer = self.build_optimizer(args.optimizer, fused=not compiled)
        self.update = self.optimizer.step
        self.loss = self.squares if args.model == "autoencoder" else self.cross_entropy
        if compiled:
            self.loss = torch.compile(self.loss)
            self.update = torch.compile(self.optimizer.step)

    def build_optimizer(self, name, fused):
        if name == "sgd":
            return torch.optim.SGD(self.model.parameters(), common.SGD_RATE)
        return torch.optim.Adam(self.model.parameters(), common.ADAM_RATE, fused=fused)

    def autocast(self):
        return torch.autocast("cpu", torch.bfloat16) if self.bf16 else contextlib.nullcontext()

    def cross_entropy(self, images, labels):
        with self.autocast():
            return functional.cross_entropy(self.model(images), labels)

    def squares(self, images, _labels):
        with self.autocast():
            return 0.5 * functional.mse_loss(self.model(images), images.flatten(1), reduction="sum")

    def train(self, images, labels):
        loss = self.loss(images, labels)
        loss.backward()
        self.update()
        self.optimizer.zero_grad(set_to_none=True)
        return loss

    def step(self, images, labels):
        images = torch.from_numpy(images).contiguous(memory_format=self.layout)
        labels = torch.from_numpy(labels)
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
    args = common.parse_args(variants=("eager", "compile"), choices={
        "layout": ("last", "plain"), "sampler": ("gather", "grid"), "precision": ("f32", "bf16")})
    # Set before the thread pool starts, since its threads inherit it.
    torch.set_flush_denormal(True)
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    common.run(Peer, args)


if __name__ == "__main__":
    main()
