"""A network that is lost and heals: a worker in its own network namespace, behind a link that goes down for longer
than the deadline. The others continue without it; when the link is up again it rejoins."""

import json
import os
import subprocess

from cluster_job import ClusterTest, OverTooSoon, Run, eventually, main

EXAMPLES = 3000
EPOCHS = 300
TRAIN = ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "300", "--threads",
         "1", "--batch", "10", "--contributions", "--lr", "0.001", "--log-every", "100",
         "--checkpoint-every", "20000", "--eval-every", "20000", "--cluster", "cluster.yaml", "--insecure"]


def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Network(ClusterTest):
    def setUp(self):
        super().setUp()
        why = json.loads(self.run_to_end(["info", "--json"]).output())["emulate"].removeprefix("no: ")
        if why.startswith("network namespaces"):
            self.skipTest(why)
        number = os.getpid() % 60000
        self.here, self.there = f"lockstep-a{number}", f"lockstep-b{number}"
        try:
            for name in (self.here, self.there):
                ip("netns", "add", name)
                self.addCleanup(subprocess.run, ["ip", "netns", "del", name], check=False)
            ip("link", "add", f"ls{number}a", "netns", self.here, "type", "veth", "peer", "name", f"ls{number}b", "netns",
               self.there)
            for name, end, address in ((self.here, "a", "10.87.0.1/24"), (self.there, "b", "10.87.0.2/24")):
                ip("-n", name, "addr", "add", address, "dev", f"ls{number}{end}")
                ip("-n", name, "link", "set", f"ls{number}{end}", "up")
                ip("-n", name, "link", "set", "lo", "up")
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            self.skipTest(f"no network namespaces here: {getattr(error, 'stderr', error)}")
        self.link = f"ls{number}b"
        with open(os.path.join(self.folder, "cluster.yaml"), "w", encoding="utf-8") as file:
            file.write("worker:\n  - 10.87.0.1:4001\n  - 10.87.0.1:4002\n  - 10.87.0.2:4003\nps:\n  - 10.87.0.1:4000\n")

    def lose_network(self, mode, epochs):
        jobs = {}
        for task in ("ps:0", "worker:0", "worker:1", "worker:2"):
            where = self.there if task == "worker:2" else self.here
            # Two machines share no file system.
            folder = "run-there" if task == "worker:2" else "run"
            jobs[task] = self.start(TRAIN + [mode, "--epochs", str(epochs), "--task=" + task, "--run-dir", folder],
                                    ["ip", "netns", "exec", where])
        run = Run(os.path.join(self.folder, "run"))
        self.wait_for_step(jobs["worker:0"], run, 200)
        ip("-n", self.there, "link", "set", self.link, "down")
        jobs["ps:0"].wait_for("worker:2 at 10.87.0.2:4003: no heartbeat for ", may_end=True)
        jobs["worker:2"].wait_for("ps:0 at 10.87.0.1:4000: no heartbeat for ")
        before = run.last_step()
        eventually(lambda: run.last_step() >= before + 200 or jobs["ps:0"].over(), "the others go on")
        away = self.contributed(run, 2)
        ip("-n", self.there, "link", "set", self.link, "up")
        eventually(lambda: self.contributed(run, 2) > away or jobs["ps:0"].over(), "worker:2 is back")
        back = self.contributed(run, 2) > away
        for task, job in jobs.items():
            self.assertEqual(job.finish(), 0, f"{task}: {job.told()}")
        self.expect_each_example_once(run, epochs, EXAMPLES)
        if not back:
            raise OverTooSoon

    @staticmethod
    def contributed(run, member):
        with open(run.file("ps-0/contributions.csv"), encoding="utf-8") as file:
            return sum(1 for line in file if line.count(",") == 6 and line.split(",")[3] == str(member))

    def test_in_sync(self):
        self.longer_until_in_time(lambda epochs: self.lose_network("--sync", epochs), EPOCHS)

    def test_in_async(self):
        self.longer_until_in_time(lambda epochs: self.lose_network("--async", epochs), EPOCHS)


if __name__ == "__main__":
    main()
