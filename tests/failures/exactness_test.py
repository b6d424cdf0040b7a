"""Synchronous training with parameter servers killed at random moments: step for step the same losses, and at the end
the same parameters, bit for bit, as a run that nobody disturbed."""

import signal
import time

from cluster_job import ClusterTest, main

EXAMPLES = 2000
EPOCHS = 30


def train(name, *more):
    return ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "200",
            "--threads", "1", "--epochs", str(EPOCHS), "--batch", "10", "--log-every", "1", "--contributions", "--lr", "0.01",
            "--optimizer", "momentum", "--sync", "--restarts", "100", "--name", name, *more]


class Exactness(ClusterTest):
    def expect_same(self, servers, *more, kills=4):
        self.run_to_end(train("calm", *more))
        calm = self.run_of("calm-1")
        job = self.start(train("shaken", *more))
        shaken = self.run_of("shaken-1")
        self.wait_for_step(job, shaken, 1)
        killed = 0
        while killed < kills and job.process.poll() is None:
            time.sleep(self.random.uniform(0, 0.3))
            victim = self.random.choice(servers)
            pid = job.roles().get(victim)
            if pid is None or job.process.poll() is not None:
                continue
            job.signal(victim, signal.SIGKILL)
            killed += 1
        self.expect_success(job)
        self.assertGreaterEqual(killed, 2, "the run was over before it could be disturbed")
        self.assertEqual(shaken.losses(), calm.losses(), job.told())
        self.assertEqual(shaken.checkpoint()[1], calm.checkpoint()[1])
        self.expect_each_example_once(shaken, EPOCHS, EXAMPLES)

    def test_one_worker_and_one_ps(self):
        self.expect_same(["ps:0"], "--workers", "1", "--ps", "1")

    def test_a_synced_ps(self):
        self.expect_same(["ps:0"], "--workers", "1", "--ps", "1", "--durability", "machine", kills=3)

    def test_three_workers(self):
        self.expect_same(["ps:0"], "--workers", "3", "--ps", "1")

    def test_two_servers(self):
        self.expect_same(["ps:0", "ps:1"], "--workers", "2", "--ps", "2")


if __name__ == "__main__":
    main()
