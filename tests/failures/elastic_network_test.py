"""All-reduce over a network that is lost and heals: a worker in its own network namespace, behind a link that goes
down for longer than the deadline. Only the side with more than half continues, and all join again."""

import contextlib
import os
import signal

import network_test
from cluster_job import Run, eventually, main
from network_test import ip

EXAMPLES = 3000
TRAIN = ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "300", "--threads",
         "1", "--epochs", "1000000", "--batch", "10", "--lr", "0.001", "--log-every", "100", "--checkpoint-every",
         "5000", "--eval-every", "5000", "--cluster", "cluster.yaml", "--insecure"]


class ElasticNetwork(network_test.Network):
    test_in_sync = test_in_async = None  # inherited tests for parameter servers

    def begin(self, addresses):
        """Roles at 10.87.0.2 are beyond the link. Two machines share no file system."""
        with open(os.path.join(self.folder, "cluster.yaml"), "w", encoding="utf-8") as file:
            file.write("worker:\n" + "".join(f"  - {address}\n" for address in addresses))
        self.jobs = []
        self.runs = []
        self.names = [f"worker:{i} at {address}" for i, address in enumerate(addresses)]
        for i, address in enumerate(addresses):
            there = address.startswith("10.87.0.2")
            folder = "run-there" if there else "run"
            self.runs.append(Run(os.path.join(self.folder, folder)))
            self.jobs.append(self.start(TRAIN + [f"--task=worker:{i}", "--run-dir", folder],
                                        ["ip", "netns", "exec", self.there if there else self.here]))
        self.wait_for_step(self.jobs[0], self.runs[0], 200)

    def cut_off(self, alone, leader):
        """One member is alone for longer than the deadline; another one leads the rest."""
        ip("-n", self.there, "link", "set", self.link, "down")
        self.jobs[leader].wait_for(f"{self.names[alone]}: no heartbeat for")
        self.jobs[alone].wait_for(f"{self.names[leader]}: no heartbeat for")
        self.jobs[leader].wait_for("continues from step")
        before = self.step(leader)
        eventually(lambda: self.step(leader) > before + 500, "the others go on")
        self.jobs[alone].wait_for("more than half of the")
        self.assertNotIn("continues from step", self.jobs[alone].told())
        ip("-n", self.there, "link", "set", self.link, "up")

    def step(self, leader):
        return self.runs[leader].last_step()

    def finish(self):
        before = self.step(0)
        eventually(lambda: self.step(0) > before + 500, "all go on")
        for job in self.jobs:
            for pid in job.roles().values():
                with contextlib.suppress(ProcessLookupError):  # another member's interrupt ends all
                    os.kill(pid, signal.SIGINT)
        for job in self.jobs:
            self.assertEqual(job.finish(), 130, job.told())
        self.expect_accounted(self.runs[0], EXAMPLES)

    def test_the_chief_is_cut_off(self):
        self.begin(["10.87.0.2:4001", "10.87.0.1:4002", "10.87.0.1:4003"])
        self.cut_off(alone=0, leader=1)
        self.jobs[0].wait_for("of worker:0, worker:1, worker:2 continues from step")
        self.finish()

    def test_of_two_the_one_with_the_lowest_number_goes_on(self):
        self.begin(["10.87.0.1:4001", "10.87.0.2:4002"])
        self.cut_off(alone=1, leader=0)
        self.jobs[0].wait_for("of worker:0, worker:1 continues from step")
        self.finish()


if __name__ == "__main__":
    main()
