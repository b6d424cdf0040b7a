"""Softmax regression with PyTorch's DistributedDataParallel. Start it as torchrun would: RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT say where its peers are. Rank 0 prints figures."""

import time

import torch
from torch import distributed
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import images


def evaluate(model, pixels, labels):
    with torch.no_grad():
        logits = model(pixels)
        right = (logits.argmax(1) == labels).float().mean()
        return cross_entropy(logits, labels).item(), right.item()


def main():
    args = images.arguments(__doc__)
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank, size = distributed.get_rank(), distributed.get_world_size()
    pixels, labels = map(torch.from_numpy, images.load(args.data, "train"))
    test = tuple(map(torch.from_numpy, images.load(args.data, "t10k")))
    layer = torch.nn.Linear(784, 10)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    model = DistributedDataParallel(layer)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    step, seconds = 0, 0.0
    for epoch in range(1, args.epochs + 1):
        began = time.monotonic()
        for places in images.batches(len(labels), args, epoch, rank, size):
            places = torch.from_numpy(places)
            optimizer.zero_grad()
            cross_entropy(model(pixels[places]), labels[places]).backward()
            optimizer.step()
            step += 1
        seconds += time.monotonic() - began
        if rank == 0:
            loss, accuracy = evaluate(layer, *test)
            print(f"epoch {epoch} step {step} loss {loss:.4f} accuracy {accuracy:.4f}")
    if rank == 0:
        print(f"trained on {step * args.batch * size / seconds:.0f} examples per second")
    distributed.barrier()  # rank 0 is the last to be ready: it evaluates
    del optimizer, model  # before the group, whose threads the model uses
    distributed.destroy_process_group()


main()
