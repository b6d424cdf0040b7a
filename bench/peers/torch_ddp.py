"""One rank of PyTorch's DistributedDataParallel over Gloo on the CPU. Rank 0 prints one JSON line."""

import argparse
import json

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import ranks
import torch_peer


class Peer(torch_peer.Peer):
    def __init__(self, args, parameters):
        super().__init__(args, parameters)
        options = {"gradient_as_bucket_view": True, "static_graph": True} if args.variant == "tuned" else {}
        self.model = DistributedDataParallel(self.model, **options)


def main():
    args = ranks.parse_args(("plain", "tuned"), {"layout": ("last", "plain")})
    args = argparse.Namespace(**vars(args), precision="f32", sampler="gather")
    torch.set_flush_denormal(True)
    torch.set_num_threads(args.threads)
    torch.set_num_interop_threads(1)
    torch.manual_seed(1 + args.rank)
    first = args.addresses.split(",")[0]
    distributed.init_process_group("gloo", init_method=f"tcp://{first}", rank=args.rank, world_size=ranks.count(args))
    peer = Peer(args, ranks.parameters(args))
    step = peer.step(*ranks.batch(args))

    def chunk(steps):
        for _ in range(steps):
            loss = step()
        return peer.value(loss)

    measured = ranks.measure(chunk, args)
    distributed.destroy_process_group()
    if args.rank == 0:
        print(json.dumps({**measured, "version": peer.version, "parameters": peer.parameters}), flush=True)


if __name__ == "__main__":
    main()
