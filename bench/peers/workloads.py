"""The rows of the table: the training, its size, and Lockstep's target."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    model: str
    batch: int
    optimizer: str
    target: float | None  # fastest peer's time over ours
    target_avx2: float | None = None  # if it differs without AVX-512
    epoch: bool = False
    precision: str = "f32"
    warm_up: int | None = None  # steps, if not the usual number
    may_rise: bool = False  # too few steps under dropout for the loss to fall
    limit: int = 600  # seconds for one run
    below_torch: bool = False  # ours must need less memory than any PyTorch
    check_batch: int = 8

    def arguments(self, threads, seconds, data):
        arguments = [*self.what(self.batch, threads), "--seconds", str(seconds)]
        arguments += ["--warm-up", str(self.warm_up)] if self.warm_up else []
        arguments += ["--may-rise"] if self.may_rise else []
        return arguments + (["--epoch", "--data", str(data)] if self.epoch else [])

    def check_arguments(self, threads, file):
        return [*self.what(self.check_batch, threads), "--check", str(file)]

    def what(self, batch, threads):
        arguments = ["--model", self.model, "--batch", str(batch), "--optimizer", self.optimizer,
                     "--threads", str(threads)]
        return arguments + (["--precision", self.precision] if self.precision != "f32" else [])

    def target_for(self, isa):
        return self.target_avx2 if self.target_avx2 and isa != "avx512" else self.target


def alexnet(name, batch, target, **more):
    return Workload(name, "alexnet", batch, "sgd", target, warm_up=1, may_rise=True, limit=300, **more)


WORKLOADS = [
    Workload("lr-1", "lr", 1, "sgd", 3.0),
    Workload("lr-100", "lr", 100, "sgd", 3.5),
    Workload("lr-512", "lr", 512, "sgd", 2.5),
    Workload("lenet-8", "lenet", 8, "adam", 4.0),
    Workload("lenet-64", "lenet", 64, "adam", 2.2),
    Workload("lenet-512", "lenet", 512, "adam", 1.7),
    Workload("epoch-lr-100", "lr", 100, "sgd", None, epoch=True),
    Workload("epoch-lenet-64", "lenet", 64, "adam", 3.0, epoch=True),
    Workload("autoencoder-128", "autoencoder", 128, "adam", 1.5),
    Workload("stn-100", "stn", 100, "adam", 1.9),
    alexnet("alexnet-32", 32, None),
    alexnet("alexnet-128", 128, 1.3, target_avx2=1.1, below_torch=True),
    alexnet("alexnet-32-bf16", 32, 1.4, precision="bf16"),
    alexnet("alexnet-128-bf16", 128, 1.4, precision="bf16"),
]


def choose(names):
    """Returns the workloads with that name, or else with that beginning. Raises KeyError for an unknown one."""
    if not names:
        return WORKLOADS
    exact = {workload.name for workload in WORKLOADS}
    chosen = set()
    for name in names:
        found = {known for known in exact if known == name or name not in exact and known.startswith(name)}
        if not found:
            raise KeyError(name)
        chosen |= found
    return [workload for workload in WORKLOADS if workload.name in chosen]
