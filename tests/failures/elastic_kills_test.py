"""All-reduce: kill -9 of workers, of the one that leads and of the evaluator at random moments, under the local launcher.
The others go on from the same step, whoever is started again joins them, and the training ends well."""

import os
import signal
import time

from cluster_job import ClusterTest, eventually, main

EXAMPLES = 3000
EPOCHS = 300


def train(*more):
    return ["train", "lr", "--dataset", "synthetic", "--train-limit", str(EXAMPLES), "--test-limit", "300", "--threads",
            "1", "--epochs", str(EPOCHS), "--batch", "10", "--log-every", "1", "--lr", "0.01", "--strategy", "allreduce",
            "--checkpoint-every", "500", "--eval-every", "500", "--restarts", "50", *more]


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Kills(ClusterTest):
    def expect_well(self, job, run):
        self.expect_success(job)
        self.expect_whole(run, EPOCHS, EXAMPLES)
        self.assertEqual(run.summary()["test_accuracy"], 1.0)

    def kill_each(self, victims, *more, start=20, gap=0.5):
        """Those of each entry at once, one entry after the other."""
        job = self.start(train("--workers", "3", *more))
        run = self.run_of("lr-1")
        if start > 0:
            self.wait_for_step(job, run, start)
        for together in victims:
            time.sleep(self.random.uniform(0, gap))
            if job.process.poll() is not None:
                break
            roles = [job.roles().get(name) for name in together]
            for pid in filter(None, roles):
                kill(pid)
        self.expect_well(job, run)
        return job

    def test_a_worker(self):
        job = self.kill_each([["worker:1"]] * 3)
        self.assertIn("worker:1 died: killed by signal 9 (Killed); starting it again", job.output())
        self.assertRegex(job.output(), r"worker:1 at 127\.0\.0\.1:\d+: (connection closed|it was started again)")
        self.assertRegex(job.output(), r"group \d+ of worker:0, worker:2 goes on from step \d+, without worker:1")
        self.assertRegex(job.output(), r"group \d+ of worker:0, worker:1, worker:2 goes on from step \d+, with worker:1 anew")

    def test_the_leader(self):
        job = self.kill_each([["worker:0"]] * 3)
        self.assertRegex(job.output(), r"group \d+ of worker:1, worker:2 goes on from step \d+, without worker:0")

    def test_two_at_once(self):
        self.kill_each([["worker:0", "worker:2"], ["worker:1", "worker:2"], ["worker:0", "worker:1"]])

    def test_one_after_the_other_while_groups_are_made(self):
        names = ["worker:0", "worker:1", "worker:2"]
        self.kill_each([[self.random.choice(names)] for _ in range(10)], gap=0.1)

    def test_at_the_start(self):
        for victim in ("worker:0", "worker:1"):
            with self.subTest(victim):
                self.setUp()
                self.kill_each([[victim]] * 2, start=0, gap=0.3)

    def test_the_evaluator(self):
        job = self.kill_each([["evaluator:0"]] * 2, "--evaluator", gap=0.3)
        for word in ("connection closed", "goes on from step"):
            self.assertNotIn(word, job.output())

    def test_all_at_once_go_on_from_the_newest_checkpoint(self):
        job = self.start(train("--workers", "3"))
        run = self.run_of("lr-1")
        self.wait_for_step(job, run, 700)
        for pid in job.roles().values():
            kill(pid)
        newest = int(os.path.basename(run.checkpoints()[-1])[5:14])
        job.wait_for(f"goes on from step {newest}")
        self.expect_well(job, run)

    def test_the_only_one(self):
        job = self.start(train("--workers", "1", "--epochs", "50"))
        run = self.run_of("lr-1")
        self.wait_for_step(job, run, 700)
        kill(job.role("worker:0"))
        self.expect_success(job)
        self.expect_whole(run, 50, EXAMPLES)


class Closing(ClusterTest):
    """Killed after the last step, while the leader evaluates and writes."""

    # The evaluation at the end is most of it.
    TRAIN = ["train", "lenet", "--dataset", "synthetic", "--train-limit", "300", "--test-limit", "2000", "--threads",
             "1", "--epochs", "1", "--batch", "20", "--strategy", "allreduce", "--eval-batch", "1", "--workers", "3"]

    VICTIMS = (["worker:0"], ["worker:1"], ["worker:0", "worker:1"], ["worker:0", "worker:1", "worker:2"])

    @staticmethod
    def used(pid):
        """Ticks of processor time."""
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return sum(map(int, file.read().rpartition(")")[2].split()[11:13]))

    def wait_for_closing(self, job):
        """Until only the leader computes. Should that be missed, what is claimed holds all the same."""
        roles = eventually(lambda: len(job.roles()) == 3 and job.roles(), "three roles")
        while job.process.poll() is None:
            try:
                before = [self.used(pid) for _, pid in sorted(roles.items())]
                time.sleep(0.1)
                leader, *others = [self.used(pid) - was for (_, pid), was in zip(sorted(roles.items()), before)]
            except OSError:
                return
            if leader >= 3 and others == [0, 0]:
                return

    def kill_when(self, wait):
        for victims in self.VICTIMS:
            with self.subTest(victims):
                self.setUp()
                job = self.start(self.TRAIN)
                wait(job)
                roles = job.roles()
                for name in filter(roles.get, victims):
                    kill(roles[name])
                self.expect_success(job)
                self.expect_whole(self.run_of("lenet-1"), 1, 300)

    def test_at_the_last_evaluation(self):
        self.kill_when(self.wait_for_closing)

    def test_when_all_is_written(self):
        self.kill_when(lambda job: eventually(
            lambda: os.path.exists(self.run_of("lenet-1").file("summary.json")), "the summary"))


if __name__ == "__main__":
    main()
